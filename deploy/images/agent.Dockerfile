# The agent: docker build -f deploy/images/agent.Dockerfile -t lastcall-agent:0.1.0 .
# Nothing is in it but Bun, the C library and the agent; no shell and no package manager.
# By digest where others will run it: --build-arg NODE_IMAGE=node@sha256:…, docs/images.md.
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
# 6 MiB less, for code that runs for some milliseconds a minute.
ENV BUN_JSC_useJIT=0
USER 65532:65532
ENTRYPOINT ["/bun", "/app/agent.js"]
