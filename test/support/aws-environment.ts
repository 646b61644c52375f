import { afterAll, beforeAll } from "vitest";

/** Lets the AWS SDK find credentials and a region while the tests of this file run. */
export function useAwsEnvironment(): void {
  const former = { ...process.env };
  beforeAll(() => {
    Object.assign(process.env, {
      AWS_ACCESS_KEY_ID: "test",
      AWS_SECRET_ACCESS_KEY: "test",
      AWS_REGION: "eu-west-1",
    });
  });
  afterAll(() => {
    process.env = former;
  });
}
