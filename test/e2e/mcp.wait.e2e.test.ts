import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { afterEach, describe, expect, test } from "vitest";
import { type Answered, callTool, textOf } from "../../src/api/mcp/testing-mcp.ts";
import { launcher, useCaisson } from "./caisson-process.ts";

const execute = promisify(execFile);
const { run, home, base, sandboxes } = useCaisson();
const clients: Client[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
});

/** Connects the client of the SDK, which starts `caisson mcp` as other programs do. */
async function connect(args: readonly string[], cwd: string): Promise<{ client: Client; transport: StdioClientTransport }> {
  const env = { ...(process.env as Record<string, string>), CAISSON_HOME: home() };
  const transport = new StdioClientTransport({ command: launcher, args: ["mcp", ...args], cwd, env, stderr: "pipe" });
  const client = new Client({ name: "test", version: "1" });
  await client.connect(transport);
  clients.push(client);
  return { client, transport };
}

const sandboxOf = ({ structuredContent }: Answered) => String(structuredContent?.sandbox);

describe("caisson mcp", () => {
  test("offers sandboxes over a folder that never changes, and leaves nothing behind", async () => {
    const folder = join(base(), "project");
    await mkdir(folder);
    await writeFile(join(folder, "a.txt"), "one\n");
    const { client, transport } = await connect(["--workspace", folder], base());
    const sandbox = sandboxOf(await callTool(client, "create_sandbox"));
    // The command waits until its first output has arrived: a client drops output that it reads together with the
    // result.
    const command = "cat a.txt; echo two >> a.txt; until [ -e /tmp/heard ]; do sleep 0.05; done; id -u";
    const ran = (await client.callTool({ name: "exec", arguments: { sandbox, command } }, undefined, {
      onprogress: ({ message }) => {
        if (message?.includes("one")) void callTool(client, "write_file", { sandbox, path: "/tmp/heard", text: "" });
      },
    })) as Answered;
    expect(ran.structuredContent).toMatchObject({ stdout: "one\n1000\n", ended: { kind: "exited", exitCode: 0 } });
    const diff = await callTool(client, "diff", { of: sandbox });
    expect(diff.structuredContent).toMatchObject({ files: [{ path: "a.txt", kind: "modified" }], patch: expect.stringContaining("+two") });
    expect(await readFile(join(folder, "a.txt"), "utf8")).toBe("one\n");
    const { contents } = await client.readResource({ uri: `caisson://sandboxes/${sandbox}/files/workspace/a.txt` });
    expect(contents[0]).toMatchObject({ text: "one\ntwo\n" });
    await callTool(client, "exec", { sandbox, command: "python3 -m http.server 8000 >/dev/null 2>&1 &" });
    const { structuredContent: preview } = await callTool(client, "preview", { sandbox, port: 8000 });
    // The page's token becomes a cookie, with a redirect.
    const page = async () => (await execute("curl", ["-sL", "-b", "", String(preview?.url)])).stdout;
    await expect.poll(page).toContain("a.txt");
    const cancel = new AbortController();
    const sleeping = client.callTool({ name: "exec", arguments: { sandbox, command: "sleep 1000" } }, undefined, { signal: cancel.signal });
    const asleep = async () =>
      String((await callTool(client, "exec", { sandbox, command: "pgrep -c sleep" })).structuredContent?.stdout).trim();
    await expect.poll(asleep).toBe("1");
    cancel.abort();
    await expect(sleeping).rejects.toThrow();
    await expect.poll(asleep).toBe("0");
    expect(textOf(await callTool(client, "create_sandbox", { network: ["open"] }))).toContain("The network may be at most none");
    expect(sandboxes()).toHaveLength(1);
    const pid = transport.pid as number;
    await client.close();
    await expect.poll(() => isThere(pid)).toBe(false);
    expect(sandboxes()).toEqual([]);
  });

  test("runs an agent and shows its changes", async () => {
    const folder = join(base(), "agents");
    await mkdir(folder);
    const model = join(base(), "model.yaml");
    await writeFile(
      model,
      'turns:\n  - calls: [{ tool: write, arguments: { path: new.txt, content: "made\\n" } }]\n  - say: Made it.\n    pauseMs: 3000\n',
    );
    const { client } = await connect(["--workspace", folder, "--model", `scripted:${model}`], base());
    const steps: string[] = [];
    const answer = (await client.callTool({ name: "run_agent", arguments: { task: "Make it." } }, undefined, {
      onprogress: ({ message }) => void steps.push(message ?? ""),
    })) as Answered;
    expect(answer.structuredContent).toMatchObject({ status: "ended", finish: "done", text: "Made it." });
    expect(steps.join("\n")).toContain("step 1");
    const diff = await callTool(client, "diff", { of: String(answer.structuredContent?.run) });
    expect(diff.structuredContent).toMatchObject({ files: [{ path: "new.txt", kind: "added" }] });
  });

  test("ends at the end of its input, and explains invalid options", async () => {
    expect(await run(["mcp", "--network", "bad host"], { input: "" })).toMatchObject({
      code: 125,
      stderr: expect.stringContaining("is not a network rule"),
    });
    expect(await run(["mcp"], { input: "" })).toMatchObject({ code: 0, text: "" });
    expect(await run(["mcp"], { input: "not JSON\n" })).toMatchObject({ code: 0 });
  });
});

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
