/**
 * A user's program on the rig's machine, with network sandboxes from the library. Prints its results as one line of
 * JSON. Its argument is the state folder.
 */
import { createCaisson, type NetworkEvent, type OwnedSandbox, runCommand } from "../../../src/index.ts";

const [, , stateDir = ""] = process.argv;
const events: { type: string; data: object }[] = [];
await using caisson = createCaisson({ stateDir, onEvent: (event) => events.push(event) });

async function fetched(sandbox: OwnedSandbox, url: string): Promise<string> {
  const argv = ["sh", "-c", `curl -sS -o /dev/null -w '%{http_code}' -H "X-Key: $KEY" ${url}`];
  return (await runCommand(sandbox, { argv })).stdout;
}

const results: Record<string, unknown> = {};
{
  await using empty = await caisson.create({ network: { mode: "allow" } });
  results.empty = [await fetched(empty, "http://api.example.com/"), await fetched(empty, "https://api.example.com/")];
}
{
  await using sandbox = await caisson.create({
    network: { mode: "allow", rules: [{ host: "api.example.com", methods: ["GET"], paths: ["/open"] }] },
    secrets: { KEY: { from: { env: "RIG_CANARY" }, hosts: ["api.example.com"] } },
  });
  const eventTypes: NetworkEvent["type"][] = [];
  sandbox.network?.subscribe((event) => eventTypes.push(event.type));
  results.before = [await fetched(sandbox, "https://api.example.com/open/a"), await fetched(sandbox, "https://api.example.com/closed")];
  const page = await sandbox.network?.fetch({ url: "https://api.example.com/open/b", bytesMax: 10 });
  const denied = await sandbox.network?.fetch({ url: "https://evil.example.net/", bytesMax: 10 });
  results.fetch = [page, denied].map((one) => (one && "denied" in one ? one.denied.reason : one?.status));
  await sandbox.network?.change({ mode: "none" }, { by: "program" });
  results.after = await fetched(sandbox, "http://api.example.com/open/a");
  results.heard = [...new Set(eventTypes)].toSorted();
}
results.told = [...new Set(events.map(({ type }) => type))].filter((type) => /^(network|secret)\./.test(type)).toSorted();
process.stdout.write(`${JSON.stringify(results)}\n`);
