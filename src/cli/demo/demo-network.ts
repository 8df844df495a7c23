import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { parsePolicy } from "../../contract/network-text.ts";
import type { NetworkVerbs } from "../../station/networks/verbs.ts";
import type { RunQuietly, Stop } from "./demo-tour.ts";

/**
 * A server of this machine's, and stops that show who reaches it. Empty where there is no network or no curl inside.
 */
export async function networkStops(options: {
  sandbox: string;
  run: RunQuietly;
  networks: NetworkVerbs;
}): Promise<{ stops: Stop[] } & AsyncDisposable> {
  const server = createServer((_request, response) => response.end("a word from your machine\n"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const usable = (await options.run(["sh", "-c", "command -v curl"])).exitCode === 0;
  const { port } = server.address() as AddressInfo;
  const shell = (line: string): Pick<Stop, "shown" | "argv"> => ({ shown: line, argv: ["sh", "-c", line] });
  const change = (words: string[]) => () =>
    options.networks.change(options.sandbox, { how: "set", policy: parsePolicy(words), by: "demo" });
  const stops: Stop[] = [
    {
      claim: "what nobody allowed is denied, and it is told why",
      before: change([`private host.caisson:${port}`]),
      ...shell("curl -sS http://example.com/"),
      holds: ({ stdout }) => stdout.includes("host_not_allowed"),
    },
    {
      claim: "what you allow, while it runs, is reached: here a server on your machine",
      ...shell(`curl -sS http://host.caisson:${port}/`),
      holds: ({ stdout }) => stdout === "a word from your machine\n",
    },
    {
      claim: "and what you take back is gone at once",
      before: change(["none"]),
      ...shell(`curl -sS http://host.caisson:${port}/`),
      holds: ({ stdout }) => stdout.includes("no_network"),
    },
  ];
  return {
    stops: usable ? stops : [],
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
