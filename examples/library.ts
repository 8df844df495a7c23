import { createSandbox, readText, restricted, runCommand, type Sandbox, writeText } from "caisson";

/**
 * Counts words in a restricted sandbox, as an agent's tool would get it: the tool can run programs and work on files
 * inside, but cannot end or escape the sandbox.
 */
async function wordCount(sandbox: Sandbox, path: string): Promise<number> {
  const { stdout } = await runCommand(sandbox, { argv: ["wc", "-w", path], timeoutMs: 10_000 });
  return Number.parseInt(stdout, 10);
}

// The current folder is visible at /workspace and never changed; the sandbox is removed at the end of the block.
await using sandbox = await createSandbox({ workspace: { kind: "folder", path: "." }, limits: { pids: 100 } });

await writeText(sandbox, "/workspace/poem.txt", "under the water\na room full of air\n");
console.log("words:", await wordCount(restricted(sandbox), "/workspace/poem.txt"));

const { ended, stdout, stderr } = await runCommand(sandbox, { argv: ["sh", "-c", "tr a-z A-Z < poem.txt > loud.txt; cat /etc/shadow"] });
console.log("outcome:", ended.kind === "exited" ? `exit code ${ended.exitCode}` : ended.kind, stdout, stderr.trim());
console.log(await readText(sandbox, "/workspace/loud.txt"));
