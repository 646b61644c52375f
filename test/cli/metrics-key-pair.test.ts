import { expect, it } from "vitest";
import { metricsKeyPair } from "../../src/cli/assemble/metrics-endpoint.ts";

it("a key pair for the metrics needs certificate and key, and is optional", () => {
  const [cert, key] = ["/tls/tls.crt", "/tls/tls.key"];
  const none = { metricsCertFile: undefined, metricsKeyFile: undefined };
  expect(metricsKeyPair(none)).toBeUndefined();
  expect(metricsKeyPair({ metricsCertFile: cert, metricsKeyFile: key })).toBeTypeOf("function");
});

it.each([
  [
    "cert",
    { metricsCertFile: "/tls/tls.crt", metricsKeyFile: undefined },
    "also needs --metrics-key-file",
  ],
  [
    "key",
    { metricsCertFile: undefined, metricsKeyFile: "/tls/tls.key" },
    "also needs --metrics-cert-file",
  ],
])("--metrics-%s-file alone is rejected", (_, options, said) => {
  expect(() => metricsKeyPair(options)).toThrow(said);
});
