# The controller and every other command: docker build -f deploy/images/controller.Dockerfile -t lastcall:0.1.0 .
# For images that others run, pin the base by digest: --build-arg NODE_IMAGE=node@sha256:…, docs/images.md.
ARG NODE_IMAGE=node:26.9.0-trixie-slim
FROM ${NODE_IMAGE} AS bundle
WORKDIR /src
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY src src
COPY tools tools
RUN node tools/bundle.ts

FROM ${NODE_IMAGE}
# Preloaded by the Deployment: it returns memory after a burst, which the C library's allocator does not.
RUN apt-get update && apt-get install -y --no-install-recommends libjemalloc2 && rm -rf /var/lib/apt/lists/*
# Of the base image, only Node is needed.
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /opt/yarn*
COPY package.json LICENSE /app/
COPY bin /app/bin
COPY --from=bundle /src/dist /app/dist
ENV NODE_ENV=production
USER 65532:65532
ENTRYPOINT ["node", "/app/bin/lastcall.js"]
