import { createHash } from "node:crypto";
import { posix } from "node:path";
import { z } from "zod";
import { CaissonError } from "../../contract/error/error.ts";
import type { WorkflowStep } from "../../contract/workflow/workflow.ts";
import { WORKSPACE } from "../../sandbox/path.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { SessionVerbs } from "../../verbs/sessions.ts";
import type { Json } from "../../workflow/state.ts";

/**
 * A reference to a file that a step created, with its size and digest when the step ended. The log contains this
 * reference, never the file.
 */
export const Artifact = z.object({
  session: z.string().min(1).max(256),
  path: z.string().min(1).max(1000),
  bytes: z.int().nonnegative(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});
export type Artifact = z.infer<typeof Artifact>;

type Sessions = Pick<SessionVerbs, "get" | "readFile">;

/** Returns the artifacts that a step declares, by name. Throws `not_found`, `too_large`, `unsupported`. */
export async function artifactsOf(step: WorkflowStep, session: string, sessions: Sessions): Promise<{ artifacts?: Record<string, Json> }> {
  const wanted = "artifacts" in step ? step.artifacts : undefined;
  if (wanted === undefined) return {};
  const artifacts: Record<string, Json> = {};
  for (const [name, path] of Object.entries(wanted)) {
    const content = await readSessionFile(session, path, sessions).catch((error: unknown) => {
      if (!(error instanceof CaissonError)) throw error;
      throw new CaissonError(error.code, `the artifact ${name} (${path}) cannot be read: ${error.message}`, { cause: error });
    });
    artifacts[name] = { session, path, bytes: content.length, sha256: digestOf(content) } satisfies Artifact;
  }
  return { artifacts };
}

/**
 * Copies artifacts into a command's sandbox. Throws `denied` for a session of another owner, `conflict` for a file that
 * has changed since, and `invalid` for a value that is not an artifact.
 */
export async function putArtifacts(
  sandbox: Pick<Sandbox, "writeFile">,
  files: Readonly<Record<string, Json>>,
  { sessions, owner }: { sessions: Sessions; owner: string },
): Promise<void> {
  for (const [to, value] of Object.entries(files)) {
    const parsed = Artifact.safeParse(value);
    if (!parsed.success) {
      throw new CaissonError("invalid", `the value for ${to} is not an artifact`, {
        hint: "Refer to an artifact of a step as $" + "{steps.NAME.output.artifacts.ARTIFACT}.",
      });
    }
    const { session, path, sha256 } = parsed.data;
    if ((await sessions.get(session)).owner !== owner) throw new CaissonError("denied", `the session ${session} belongs to another owner`);
    const content = await readSessionFile(session, path, sessions);
    if (digestOf(content) !== sha256) {
      throw new CaissonError("conflict", `${path} in the session ${session} has changed since the step that created it ended`, {
        hint: "A later step changed it. Let that step work in a fork.",
      });
    }
    await sandbox.writeFile(placeInside(to), content, { parents: true });
  }
}

function placeInside(to: string): string {
  const place = posix.resolve(WORKSPACE, to);
  if (place.startsWith(`${WORKSPACE}/`)) return place;
  throw new CaissonError("invalid", `${JSON.stringify(to)} is not in the workspace`);
}

async function readSessionFile(session: string, path: string, sessions: Sessions): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of sessions.readFile(session, { path })) pieces.push(piece);
  return Buffer.concat(pieces);
}

const digestOf = (content: Uint8Array): string => createHash("sha256").update(content).digest("hex");
