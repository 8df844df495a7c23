import { describe, expect, test } from "vitest";
import { jsonPieces } from "./json-pieces.ts";

describe("jsonPieces", () => {
  test.each([
    null,
    "text",
    [1, undefined, { a: 1 }],
    {},
    { a: undefined, b: 1, "c\n": [undefined, () => 0, null, [1], new Date(0)], d: new Date(0), e: [] },
    { toJSON: () => "own" },
    { items: Array.from({ length: 5_000 }, (_, at) => ({ at, text: "ü".repeat(50) })), next: null },
  ])("returns the text of JSON.stringify (%#)", async (value) => {
    expect((await jsonPieces(value)).join("")).toBe(JSON.stringify(value));
  });

  test("yields to the event loop between large items", async () => {
    const events = Array.from({ length: 40 }, () => "Line.\n".repeat(150_000));
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    const pieces = await jsonPieces({ events });
    clearInterval(timer);
    expect(pieces.length).toBeGreaterThanOrEqual(events.length);
    expect(turns).toBeGreaterThan(3);
  });
});
