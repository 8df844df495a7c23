import { expect, test } from "vitest";
import { problemOf } from "../contract/api/problem.ts";
import { CaissonError } from "../contract/error/error.ts";
import { connect } from "./connect.ts";
import type { Answer } from "./request.ts";

const refusal = (details: Record<string, unknown>) =>
  new Response(JSON.stringify(problemOf(new CaissonError("unavailable", "the station is overloaded", { details }))), { status: 503 });

/** Creates a client whose station gives these answers in sequence. */
function answering(answers: Answer[]) {
  const keys: (string | undefined)[] = [];
  const client = connect({
    url: "http://station",
    fetch: async (_url, init) => {
      keys.push((init.headers as Record<string, string>)["idempotency-key"]);
      return answers[keys.length - 1] as Answer;
    },
  });
  return { client, keys };
}

test("retries an overloaded station after the time it specifies", async () => {
  const { client, keys } = answering([refusal({ overload: true, retryAfterSeconds: 0.01 }), new Response(JSON.stringify({ pid: 1 }))]);
  await client.status();
  expect(keys).toHaveLength(2);
});

test("repeats a rejected change with the same key", async () => {
  const { client, keys } = answering([refusal({ overload: true, retryAfterSeconds: 0.01 }), new Response(JSON.stringify({ pid: 1 }))]);
  await client.shutDown({});
  expect(keys).toHaveLength(2);
  expect(keys[0]).toEqual(expect.any(String));
  expect(keys[1]).toBe(keys[0]);
});

test("fails immediately if the station asks for a long pause", async () => {
  const { client, keys } = answering([refusal({ overload: true, retryAfterSeconds: 600 })]);
  await expect(client.status()).rejects.toMatchObject({ code: "unavailable" });
  expect(keys).toHaveLength(1);
});
