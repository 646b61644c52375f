/**
 * The I/O of a program that only writes lines, through the console: on Bun, `process.stderr` brings
 * 7 MiB of stream machinery with it.
 */
export function leanIo() {
  return {
    err: (text: string) => console.error(text.replace(/\n$/, "")),
    env: process.env,
    fetch: globalThis.fetch,
  };
}
