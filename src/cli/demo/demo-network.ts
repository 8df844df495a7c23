import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { parsePolicy } from "../../contract/network/network-text.ts";
import type { NetworkVerbs } from "../../verbs/networks.ts";
import type { RunQuietly, Stop } from "./demo-tour.ts";

/**
 * Starts a server on this machine and returns stops that show who can reach it. The list is empty if the sandbox has no
 * network or no curl.
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
      claim: "all other hosts are denied, with a reason",
      before: change([`private host.caisson:${port}`]),
      ...shell("curl -sS http://example.com/"),
      holds: ({ stdout }) => stdout.includes("host_not_allowed"),
    },
    {
      claim: "it reaches what you allow, even later: here a server on your machine",
      ...shell(`curl -sS http://host.caisson:${port}/`),
      holds: ({ stdout }) => stdout === "a word from your machine\n",
    },
    {
      claim: "and what you revoke is denied at once",
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
