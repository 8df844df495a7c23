import { expect } from "vitest";
import { useRunsCli } from "./runs-cli.ts";

/** Runs the command line for agents that work on folders, and shows what they changed. */
export function useWorkspaceCli() {
  const cli = useRunsCli();
  /** Runs one command in a run, and resolves with the session's name. */
  async function work(command: string, argv: readonly string[], cwd: string): Promise<{ run: string; stderr: string; text: string }> {
    const model = await cli.script({ turns: [{ calls: [{ tool: "bash", arguments: { command } }] }, { say: "Done." }] });
    const result = await cli.run(["run", "do it", "--model", model, "--runtime", "oci", ...argv], { cwd });
    expect(result.code, result.stderr + result.text).toBe(0);
    return { run: /run_[a-z0-9]+/.exec(result.text)?.[0] ?? "", stderr: result.stderr, text: result.text };
  }
  const ok = async (argv: readonly string[], cwd: string) => {
    const result = await cli.run(argv, { cwd });
    expect(result.code, result.stderr).toBe(0);
    return result;
  };
  return { cli, work, ok };
}
