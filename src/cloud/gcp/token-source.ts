/** Where access tokens come from. */
export interface TokenSource {
  /** A token that is good now; undefined where requests go out without one. */
  token(): Promise<string | undefined>;
  /** Drops what is kept: the cloud refused the last token. */
  forget(): void;
}

/** For an endpoint on loopback without credentials: requests carry no token. */
export const noTokens: TokenSource = {
  token: () => Promise.resolve(undefined),
  forget: () => undefined,
};
