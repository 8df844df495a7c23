import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { CaissonError } from "../../contract/error/error.ts";
import { ABSENT, ifErrno, jsonOrNull } from "../../lib/failures.ts";
import type { Model, ModelChunk, ModelRequest } from "./model.ts";

const Recording = z.object({ version: z.literal(1), model: z.string(), digest: z.string(), request: z.json(), chunks: z.array(z.json()) });

/** Returns a digest of everything the model gets. It does not depend on the key order of objects. */
export function requestDigest(request: ModelRequest): string {
  const { from: _, ...sent } = request;
  return createHash("sha256").update(canonical(sent)).digest("hex").slice(0, 32);
}

/** Passes calls through and stores each complete answer in a file, named by agent, position and digest. */
export function recordingModel(model: Model, dir: string): Model {
  return {
    ...model,
    async *stream(request, options) {
      const chunks: ModelChunk[] = [];
      for await (const chunk of model.stream(request, options)) {
        chunks.push(chunk);
        // Store before the last chunk: the consumer stops reading after it.
        if (chunk.kind === "end") await keep(dir, request, { model: model.name, chunks });
        yield chunk;
      }
    },
  };
}

async function keep(dir: string, request: ModelRequest, answer: { model: string; chunks: readonly ModelChunk[] }): Promise<void> {
  const digest = requestDigest(request);
  await mkdir(dir, { recursive: true });
  const path = join(dir, fileName(request, digest));
  const { from: _, ...sent } = request;
  await writeFile(`${path}.part`, JSON.stringify({ version: 1, digest, request: sent, ...answer }, null, 1));
  await rename(`${path}.part`, path);
}

/** Answers from recordings alone, without network access. Fails for a call that was not recorded or has changed. */
export function replayingModel(options: { dir: string; name: string; contextTokens: number; cost: Model["cost"] }): Model {
  return {
    name: options.name,
    contextTokens: options.contextTokens,
    cost: options.cost,
    async *stream(request, { signal }) {
      const recording = await findRecording(options.dir, request);
      for (const chunk of recording.chunks) {
        if (signal.aborted) throw new CaissonError("cancelled", "the replayed call was cancelled");
        yield chunk as unknown as ModelChunk;
      }
    },
  };
}

async function findRecording(dir: string, request: ModelRequest): Promise<z.infer<typeof Recording>> {
  const digest = requestDigest(request);
  const path = join(dir, fileName(request, digest));
  const text = await ifErrno(readFile(path, "utf8"), ABSENT, null);
  if (text === null) throw await missing(dir, request);
  const parsed = Recording.safeParse(jsonOrNull(text));
  if (!parsed.success || parsed.data.digest !== digest) throw new CaissonError("invalid", `the recording ${path} is damaged`);
  return parsed.data;
}

async function missing(dir: string, request: ModelRequest): Promise<CaissonError> {
  const prefix = namePrefix(request);
  const names = await ifErrno(readdir(dir), ABSENT, []);
  const other = names.find((name) => name.startsWith(prefix) && name.endsWith(".json"));
  const call = `call ${request.from.position} of ${request.from.agent}`;
  if (!other) {
    return new CaissonError("not_found", `there is no recording of ${call} in ${dir}`, { hint: "Record the run again with --record." });
  }
  const recorded = Recording.safeParse(jsonOrNull(await readFile(join(dir, other), "utf8")));
  const where = recorded.success ? firstDifference(recorded.data.request, request) : "the recording cannot be read";
  return new CaissonError("conflict", `${call} differs from its recording: ${where}`, {
    hint: "Record the run again with --record.",
  });
}

function firstDifference(recorded: unknown, request: ModelRequest): string {
  const before = (recorded as { messages?: unknown[] }).messages ?? [];
  const at = request.messages.findIndex((message, index) => canonical(message) !== canonical(before[index]));
  if (at === -1)
    return before.length > request.messages.length ? `message ${request.messages.length + 1} is missing` : "its tools or settings differ";
  return `message ${at + 1} (${request.messages[at]?.role}) differs: was ${canonical(before[at]).slice(0, 300)}, is ${canonical(request.messages[at]).slice(0, 300)}`;
}

const namePrefix = (request: ModelRequest) =>
  `${request.from.agent.replaceAll(/[^A-Za-z0-9-]/g, "_")}-${request.from.purpose}-${String(request.from.position).padStart(4, "0")}-`;
const fileName = (request: ModelRequest, digest: string) => `${namePrefix(request)}${digest}.json`;

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value !== null && typeof value === "object") {
    const entries = Object.entries(value).filter(([, each]) => each !== undefined);
    entries.sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${entries.map(([key, each]) => `${JSON.stringify(key)}:${canonical(each)}`).join(",")}}`;
  }
  return JSON.stringify(value) ?? "null";
}
