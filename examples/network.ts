import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createSandbox, parsePolicy, runCommand } from "caisson";

// A server on this machine that the sandbox may reach, and nothing else.
const server = createServer((request, response) => response.end(`you asked for ${request.url}\n`));
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
const { port } = server.address() as AddressInfo;

{
  await using sandbox = await createSandbox({ network: parsePolicy([`private GET host.caisson:${port}/public`]) });
  sandbox.network?.subscribe((event) => {
    if (event.type === "network.denied") console.log("denied:", event.data.reason, event.data.path);
  });
  const get = async (path: string) => {
    const { stdout } = await runCommand(sandbox, { argv: ["curl", "-sS", `http://host.caisson:${port}${path}`] });
    return stdout.split("\n")[0];
  };
  console.log(await get("/public/readme"));
  console.log(await get("/private/keys"));

  // Policies can change while a sandbox runs.
  await sandbox.network?.change(parsePolicy([`private host.caisson:${port}`]), { by: "example" });
  console.log(await get("/private/keys"));
}
server.close();
