import { CaissonError } from "../../contract/error/error.ts";
import type { CreateSandbox } from "../../contract/sandbox/sandbox-verbs.ts";
import { createTemplateStore } from "./template-store.ts";

/** What a sandbox takes over from a template. */
export interface TemplateStart {
  runtime: string;
  snapshot: string;
  env: Readonly<Record<string, string>>;
}

/**
 * Finds the template that an owner means by a name or id. Throws `not_found`, `invalid`, and `unsupported` if another
 * runtime is requested than the one that has its files.
 */
export async function startOfTemplate(
  stateDir: string,
  word: string,
  { owner, runtime: requested }: { owner: string; runtime: string | undefined },
): Promise<TemplateStart> {
  const { id, runtime, snapshot, config } = await createTemplateStore({ stateDir }).find(word, { owner });
  if (requested !== undefined && requested !== "auto" && requested !== runtime)
    throw new CaissonError("unsupported", `the template ${word} was built in the runtime ${runtime}, not in ${requested}`, {
      hint: `Leave the runtime out, or build it again: caisson template build --runtime ${requested}`,
      details: { template: id },
    });
  return { runtime, snapshot, env: config.env };
}

const SUDO_FOLDER = "/.caisson/bin";

/** Returns a template's variables for a sandbox. With root allowed, our `sudo` stays first on PATH. */
export function startingVariables(env: Readonly<Record<string, string>>, { allowRoot }: { allowRoot: boolean }): Record<string, string> {
  const { PATH, ...others } = env;
  if (PATH === undefined) return others;
  return { ...others, PATH: allowRoot ? `${SUDO_FOLDER}:${PATH}` : PATH };
}

/** Starts a sandbox from the snapshot of a template, in its runtime and with its variables below the request's own. */
export async function withBuiltTemplate(
  { template, ...request }: CreateSandbox,
  { stateDir, owner }: { stateDir: string; owner: string },
): Promise<CreateSandbox> {
  if (template === undefined) return request;
  const start = await startOfTemplate(stateDir, template, { owner, runtime: request.runtime });
  const { spec: config } = request;
  const env = { ...startingVariables(start.env, config), ...config.env };
  return { ...request, runtime: start.runtime, spec: { ...config, template: { kind: "snapshot", id: start.snapshot }, env } };
}
