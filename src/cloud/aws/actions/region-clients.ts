import type { InRegion } from "../ec2-machine.ts";

/** One client for each region, made when it is first asked for. */
export function oneEach<Client>(make: InRegion<Client>): InRegion<Client> {
  const clients = new Map<string | undefined, Client>();
  return (region) => {
    const client = clients.get(region) ?? make(region);
    clients.set(region, client);
    return client;
  };
}

/** `eu-west-1` of `arn:aws:sns:eu-west-1:123456789012:spot`; undefined of a mere name. */
export function regionOfArn(arn: string): string | undefined {
  return /^arn:[^:]+:[^:]+:([a-z0-9-]+):/.exec(arn)?.[1];
}
