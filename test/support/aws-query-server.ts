import { ScriptedServer } from "./scripted-server.ts";

export interface QueryAnswer {
  readonly status: number;
  readonly xml: string;
}

/**
 * A service of AWS on loopback that speaks the Query protocol: a form is asked, XML is answered.
 */
export abstract class AwsQueryServer {
  readonly #server = new ScriptedServer(({ body }, response) => {
    const { status, xml } = this.answer(new URLSearchParams(body));
    response.writeHead(status, { "content-type": "text/xml" });
    response.end(xml);
  });

  get url(): string {
    return this.#server.url;
  }

  async start(): Promise<this> {
    await this.#server.start();
    return this;
  }

  stop(): Promise<void> {
    return this.#server.stop();
  }

  protected abstract answer(asked: URLSearchParams): QueryAnswer;
}
