import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { StartRunInput } from "../../src/contract/run/run-verbs.ts";
import type { useConsole } from "./console.ts";

type Console = Pick<ReturnType<typeof useConsole>, "url" | "token" | "base">;

/** Starts runs of scripted models on a test's station, over the API as any program would. */
export function scriptedRuns({ url, token, base }: Console) {
  let scripts = 0;
  const headers = (as: string) => ({ authorization: `Bearer ${as}`, "content-type": "application/json" });
  async function script(content: object): Promise<string> {
    scripts += 1;
    const path = join(base(), `script-${scripts}.json`);
    await writeFile(path, JSON.stringify(content));
    return `scripted:${path}`;
  }
  async function read(path: string, as = token()) {
    const answer = await fetch(`${url()}${path}`, { headers: headers(as) });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer;
  }
  return {
    script,
    /** Returns the run's id. */
    async startRun(content: object, request: Partial<StartRunInput> = {}, as = token()): Promise<string> {
      const answer = await fetch(`${url()}/v1/runs`, {
        method: "POST",
        headers: headers(as),
        body: JSON.stringify({ task: "A scripted task", model: await script(content), attended: true, ...request }),
      });
      if (!answer.ok) throw new Error(`the run was not started: ${answer.status} ${await answer.text()}`);
      return ((await answer.json()) as { run: string }).run;
    },
    async view(run: string): Promise<{ status: string; finish: string | null; sandbox: { id: string } | null }> {
      return (await read(`/v1/runs/${run}`)).json() as never;
    },
  };
}
