import { request as httpRequest } from "node:http";

/** A package of the npm registry in tests. */
export const tarball = "/npm/caisson-left/-/caisson-left-1.0.0.tgz";

/** Sends a request whose path goes out unchanged, because fetch would normalize it, and returns the answer. */
export function raw(origin: string, target: string, method = "GET"): Promise<{ status: number; text: string }> {
  const { hostname, port } = new URL(origin);
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ hostname, port, path: target, method, agent: false }, async (response) => {
      const parts = await response.toArray();
      resolve({ status: response.statusCode ?? 0, text: Buffer.concat(parts).toString() });
    });
    sent.once("error", reject);
    sent.end();
  });
}
