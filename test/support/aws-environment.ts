import { beforeAll } from "vitest";

/** Lets the AWS SDK find credentials and a region in this file. */
export function useAwsEnvironment(): void {
  beforeAll(() => {
    Object.assign(process.env, {
      AWS_ACCESS_KEY_ID: "test",
      AWS_SECRET_ACCESS_KEY: "test",
      AWS_REGION: "eu-west-1",
    });
  });
}
