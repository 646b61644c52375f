# The agent: docker build -f deploy/images/agent.Dockerfile -t lastcall-agent:0.1.0 .
# It contains only Bun, the C library and the agent; no shell and no package manager.
# For images that others run, pin the base by digest: --build-arg NODE_IMAGE=node@sha256:…, docs/images.md.
ARG NODE_IMAGE=node:26.9.0-trixie-slim
ARG BUN_IMAGE=oven/bun:1.4.5-debian
FROM ${NODE_IMAGE} AS bundle
WORKDIR /src
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY src src
COPY tools tools
RUN node tools/bundle.ts

FROM ${BUN_IMAGE} AS root
COPY --from=bundle /src/dist /dist
COPY deploy/images/agent-root.sh /
RUN sh /agent-root.sh /dist /root-fs

FROM scratch
COPY --from=root /root-fs /
# Saves 6 MiB; the code runs only a few milliseconds per minute.
ENV BUN_JSC_useJIT=0
USER 65532:65532
ENTRYPOINT ["/bun", "/app/agent.js"]
