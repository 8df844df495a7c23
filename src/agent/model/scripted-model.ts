import { readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { parse } from "yaml";
import { z } from "zod";
import { CaissonError } from "../../contract/error/error.ts";
import { checkValue, tellProblems } from "../../contract/error/plain-problems.ts";
import { Usage } from "../../contract/model/usage.ts";
import { jsonOrNull } from "../../lib/failures.ts";
import type { Model, ModelChunk, ModelRequest } from "./model.ts";

const FailureCode = z.enum(["unavailable", "busy", "invalid", "timeout", "protocol", "too_large"]);

const Turn = z.strictObject({
  /** Requirements on the request. The run fails with a message if one is not met. */
  expect: z
    .strictObject({
      /** Texts that must occur somewhere in the request. */
      contains: z.array(z.string()).default([]),
      /** Texts that must occur in the messages since the model's last answer. */
      news: z.array(z.string()).default([]),
      absent: z.array(z.string()).default([]),
    })
    .optional(),
  think: z.string().optional(),
  say: z.string().optional(),
  calls: z.array(z.strictObject({ tool: z.string(), arguments: z.json().default({}) })).default([]),
  /** Fails with this code this many times before the turn is given. */
  fail: z.strictObject({ code: FailureCode, times: z.int().positive().default(1) }).optional(),
  /** The pause between two pieces of the answer. */
  pauseMs: z.int().nonnegative().default(0),
  usage: Usage.partial().optional(),
});

const Script = z.strictObject({
  /** A description for people, so that this is not mistaken for a real model. */
  about: z.string().default("a scripted model"),
  contextTokens: z.int().positive().default(200_000),
  costUsdPerCall: z.number().nonnegative().default(0),
  turns: z.array(Turn),
  /** Turns of sub-agents by agent name. */
  agents: z.record(z.string(), z.array(Turn)).default({}),
  /** Turns for runs whose task contains all of these texts. The first match wins, before `agents`. */
  tasks: z
    .array(z.strictObject({ contains: z.array(z.string().min(1)).min(1), turns: z.array(Turn) }))
    .max(1000)
    .default([]),
  /** The answer to each request for a summary of the conversation, or the failure. */
  summary: z.union([z.string(), z.strictObject({ fail: FailureCode })]).default("(scripted summary)"),
});
export type Script = z.input<typeof Script>;

/**
 * Creates a model that answers from a script, without network access: for tests, for the demo, and for rehearsing an
 * agent.
 */
export function createScriptedModel(input: Script, options: { name?: string } = {}): Model {
  const parsed = checkValue(Script, input);
  if (!parsed.success) throw new CaissonError("invalid", `invalid script: ${tellProblems(parsed.problems)}`);
  const script = parsed.data;
  const failures = new Map<string, number>();
  return {
    name: options.name ?? "scripted",
    contextTokens: script.contextTokens,
    cost: () => script.costUsdPerCall,
    async *stream(request, { signal }) {
      if (request.from.purpose === "summary") {
        if (typeof script.summary === "object") throw new CaissonError(script.summary.fail, "scripted summary failure");
        yield* speak({ ...Turn.parse({}), say: script.summary }, request, signal);
        return;
      }
      const turns = turnsFor(script, request);
      const turn = turns[request.from.position - 1];
      if (!turn) {
        throw new CaissonError(
          "invalid",
          `the script has ${turns.length} turns for ${request.from.agent}, so call ${request.from.position} has none`,
          {
            hint: "Add a turn with text and no tool calls, which ends the run.",
          },
        );
      }
      if (turn.fail) {
        const key = `${request.from.agent}/${request.from.position}`;
        const failed = failures.get(key) ?? 0;
        if (failed < turn.fail.times) {
          failures.set(key, failed + 1);
          throw new CaissonError(turn.fail.code, `scripted failure ${failed + 1} of ${turn.fail.times} at call ${request.from.position}`);
        }
      }
      checkExpectations(turn, request);
      yield* speak(turn, request, signal);
    },
  };
}

function turnsFor({ tasks, agents, turns }: z.infer<typeof Script>, { messages, from }: ModelRequest): readonly z.infer<typeof Turn>[] {
  const task = JSON.stringify(messages.find(({ role }) => role === "user") ?? null);
  const own = tasks.find(({ contains }) => contains.every((text) => task.includes(inJson(text))));
  return own?.turns ?? agents[from.agent] ?? turns;
}

/** Escapes the text as in JSON. */
const inJson = (text: string) => JSON.stringify(text).slice(1, -1);

/** Loads a script in YAML or JSON. Throws `not_found`, or `invalid` with the line. */
export async function loadScriptedModel(path: string): Promise<Model> {
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    throw new CaissonError("not_found", `the script ${path} cannot be read`, { cause: error });
  });
  let value: unknown;
  try {
    // JSON first: a script may be long, and the YAML parser takes fifty times as long.
    value = jsonOrNull(text) ?? parse(text);
  } catch (error) {
    throw new CaissonError("invalid", `the script ${path} is not YAML: ${error instanceof Error ? error.message : error}`);
  }
  return createScriptedModel(value as Script, { name: `scripted:${path}` });
}

async function* speak(turn: z.infer<typeof Turn>, request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelChunk> {
  const wait = async () => {
    if (signal.aborted) throw new CaissonError("cancelled", "the scripted call was cancelled");
    if (turn.pauseMs > 0) {
      await delay(turn.pauseMs, undefined, { signal }).catch(() => {
        throw new CaissonError("cancelled", "the scripted call was cancelled");
      });
    }
  };
  if (turn.think !== undefined) yield { kind: "thought", text: turn.think };
  for (const word of wordsOf(turn.say ?? "")) {
    await wait();
    yield { kind: "text", text: word };
  }
  let number = 0;
  for (const call of turn.calls) {
    await wait();
    number += 1;
    yield { kind: "toolCall", providerCall: `call-${request.from.position}-${number}`, name: call.tool, arguments: call.arguments };
  }
  const usage = {
    inputTokens: turn.usage?.inputTokens ?? request.from.estimatedTokens,
    outputTokens: turn.usage?.outputTokens ?? 10,
    cachedInputTokens: turn.usage?.cachedInputTokens ?? 0,
    reasoningTokens: turn.usage?.reasoningTokens ?? 0,
  };
  yield { kind: "end", stop: turn.calls.length > 0 ? "tools" : "end", usage };
}

function checkExpectations(turn: z.infer<typeof Turn>, request: ModelRequest): void {
  if (!turn.expect) return;
  const lastSpoken = request.messages.findLastIndex((message) => message.role === "assistant");
  const whole = JSON.stringify(request.messages);
  const news = JSON.stringify(request.messages.slice(lastSpoken + 1));
  const missing = [
    ...turn.expect.contains
      .filter((text) => !whole.includes(inJson(text)))
      .map((text) => `the request does not contain ${JSON.stringify(text)}`),
    ...turn.expect.news
      .filter((text) => !news.includes(inJson(text)))
      .map((text) => `the newest messages do not contain ${JSON.stringify(text)}`),
    ...turn.expect.absent.filter((text) => whole.includes(inJson(text))).map((text) => `the request contains ${JSON.stringify(text)}`),
  ];
  if (missing.length > 0) {
    throw new CaissonError(
      "invalid",
      `the script's expectation failed at call ${request.from.position}: ${missing.join("; ")}; newest messages: ${news.slice(0, 2000)}`,
    );
  }
}

/** Splits a text into words, each with the white space after it; the first also keeps the white space before it. */
function wordsOf(text: string): string[] {
  const [first, ...others] = text.trimStart().match(/\S+\s*/g) ?? [];
  return first === undefined ? [] : [text.slice(0, text.length - text.trimStart().length) + first, ...others];
}
