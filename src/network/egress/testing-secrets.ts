import { SecretConfig } from "../../contract/network/network.ts";
import { createSecretBook, type SecretBook } from "../secrets/secret-book.ts";
import { createEgressRig, type EgressRig } from "./testing-egress.ts";

export const SECRET_VALUE = "ghp_realvalue0123456789abcdefABCDEF";

interface Received {
  method: string;
  url: string;
  headers: Record<string, unknown>;
}

/** A rig with one secret, TOKEN, for GET requests below /api of `https://site.test:port`. */
export interface SecretRig {
  rig: EgressRig;
  secrets: SecretBook;
  placeholder: string;
  port: number;
  /** The requests that the server received. `answer` is what it responds with. */
  received: Received[];
  answer: { headers: Record<string, string>; body: string | Buffer };
  /** Moves the secret to this port. */
  useAt(port: number): void;
}

export async function createSecretRig(): Promise<SecretRig> {
  // Ports are known only after the servers listen, so the book is filled in later.
  const secrets = {} as SecretBook;
  const rig = await createEgressRig({ secrets });
  const received: Received[] = [];
  const answer: SecretRig["answer"] = { headers: {}, body: "hello" };
  rig.names.set("site.test", ["127.0.0.1"]).set("other.test", ["127.0.0.1"]);
  const port = await rig.https((request, response) => {
    received.push({ method: request.method ?? "", url: request.url ?? "", headers: request.headers });
    for (const [name, value] of Object.entries(answer.headers)) response.setHeader(name, value);
    response.end(answer.body);
  });
  const useAt = (at: number) => {
    const config = SecretConfig.parse({ hosts: ["site.test"], ports: [at], methods: ["GET"], paths: ["/api"] });
    const placeholders = secrets.placeholders === undefined ? {} : { placeholders: { ...secrets.placeholders } };
    Object.assign(
      secrets,
      createSecretBook({ configs: { TOKEN: config }, env: { TOKEN: SECRET_VALUE }, runCommand: async () => "", ...placeholders }),
    );
  };
  useAt(port);
  rig.setPolicy({ mode: "allow", rules: [{ host: "*", ports: [port], private: true }] });
  return { rig, secrets, placeholder: secrets.placeholders.TOKEN ?? "", port, received, answer, useAt };
}
