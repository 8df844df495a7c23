import { request as httpRequest } from "node:http";

/** A package of the npm registry that tests stand up. */
export const tarball = "/npm/caisson-left/-/caisson-left-1.0.0.tgz";

/** What a request is answered with whose path goes out as it is, since fetch would tidy it up. */
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
