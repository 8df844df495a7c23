import { Readable } from "node:stream";
import fc from "fast-check";
import { expect, test } from "vitest";
import { tries } from "../../../test/support/thorough.ts";
import type { ResponseHead } from "../http/head.ts";
import { createAnswerRedactor, type ReturningValue } from "./answer-redactor.ts";
import { encodedForms } from "./encodings.ts";
import { makePlaceholder } from "./placeholder.ts";
import type { AnswerRedactor } from "./secret-book.ts";

const token = "ghp_Zx81kQpW0vT5yLr7Nc2Md9Hs4Jg6Fb3A";
const placeholder = makePlaceholder(token, []);

function redactorOf(values: readonly ReturningValue[]): AnswerRedactor {
  const redactor = createAnswerRedactor(values);
  if (redactor === null) throw new Error("nothing to redact");
  return redactor;
}

async function throughBody(redactor: AnswerRedactor, chunks: readonly Buffer[]): Promise<Buffer> {
  const out: Buffer[] = [];
  for await (const chunk of Readable.from(chunks, { objectMode: false }).pipe(redactor.body())) out.push(chunk);
  return Buffer.concat(out);
}

function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const chunks: Buffer[] = [];
  let at = 0;
  for (const size of sizes) {
    chunks.push(bytes.subarray(at, at + size));
    at += size;
  }
  return [...chunks, bytes.subarray(at)].filter((chunk) => chunk.length > 0);
}

test.each([
  ["as it is", (text: string) => text],
  ["in JSON", (text: string) => JSON.stringify({ token: text })],
  ["in base64", (text: string) => Buffer.from(text).toString("base64")],
  ["in hexadecimal", (text: string) => Buffer.from(text).toString("hex")],
  ["in HEXADECIMAL", (text: string) => Buffer.from(text).toString("hex").toUpperCase()],
  ["in a query", (text: string) => `/x?token=${encodeURIComponent(text)}&y`],
])("replaces a value that comes back %s with its placeholder", async (_how, write) => {
  const body = await throughBody(redactorOf([{ value: token, placeholder }]), [Buffer.from(`<p>${write(token)}</p>`)]);
  expect(body.toString()).toBe(`<p>${write(placeholder)}</p>`);
});

test("replaces the value in Basic credentials", async () => {
  for (const user of ["x-access-token", "me", "you"]) {
    const credentials = Buffer.from(`${user}:${token}`).toString("base64");
    const body = (await throughBody(redactorOf([{ value: token, placeholder }]), [Buffer.from(credentials)])).toString();
    expect(body).toHaveLength(credentials.length);
    const seen = Buffer.from(body, "base64").toString();
    // Up to four bits of the first and last byte remain, which are shared with the neighbors.
    expect(seen.slice(user.length + 2, -1)).toBe(placeholder.slice(1, -1));
  }
});

test("removes the value from base64-encoded text, wherever it occurs", async () => {
  // The second one has pluses and slashes in base64 at every offset.
  const long = ["Zx81kQpW0vT5yLr7Nc2Md9Hs4Jg6Fb3A1e2X9", "??>>~~??>>~~??>>~~??>>~~??>>~~??>>~~?"];
  for (const value of long.flatMap((text) => [text, text.slice(1), text.slice(2)])) {
    const redactor = redactorOf([{ value, placeholder: makePlaceholder(value, []) }]);
    for (const encoding of ["base64", "base64url"] as const) {
      for (const [before, after] of [
        ["", "~~~"],
        ["?", "\n~"],
        [">>", "?"],
        ["abc", ""],
      ] as const) {
        const encoded = Buffer.from(before + value + after).toString(encoding);
        const body = (await throughBody(redactor, [Buffer.from(encoded)])).toString();
        expect(Buffer.from(body, encoding).toString("latin1")).not.toContain(value.slice(2, -2));
      }
    }
  }
});

test.each([
  ["with what follows", { value: "aaaaaaaa", placeholder: "bcbcbcba" }, ["aaaaaaaaaaaaaaa"]],
  ["with what follows in the next chunk", { value: "aaaaaaaa", placeholder: "bcbcbcba" }, ["aaaaaaaa", "aaaaaaa"]],
  ["with what came before", { value: "abcdefgh", placeholder: "efgh0000" }, ["abcdabcdefgh"]],
  ["with what was sent before", { value: "abcdefgh", placeholder: "efgh0000" }, ["abcdabc", "defgh"]],
])("redacts a value that a placeholder forms %s", async (_how, returning, chunks) => {
  const out = (
    await throughBody(
      redactorOf([returning]),
      chunks.map((chunk) => Buffer.from(chunk)),
    )
  ).toString();
  expect(out).toHaveLength(chunks.join("").length);
  expect(out).not.toContain(returning.value);
});

test("finds values with characters that encodings change, in each encoding", async () => {
  const value = `p"\\/+ &<>'*~()!=?%${"q".repeat(8)}`;
  const redactor = redactorOf([{ value, placeholder: makePlaceholder(value, []) }]);
  for (const { pattern } of encodedForms(value, "")) {
    const body = (await throughBody(redactor, [Buffer.from(`[${pattern}]`)])).toString();
    expect(body).not.toContain(pattern);
    expect(body).toHaveLength(pattern.length + 2);
  }
  expect(encodedForms(value, "").map(({ pattern }) => pattern)).toEqual(
    expect.arrayContaining([
      JSON.stringify(value).slice(1, -1),
      encodeURIComponent(value),
      new URLSearchParams({ v: value }).toString().slice(2),
    ]),
  );
});

test("redacts a value at its own length if its placeholder has another", async () => {
  const redactor = redactorOf([{ value: token, placeholder: "caisson_abcdefghijklmnop" }]);
  expect((await throughBody(redactor, [Buffer.from(`<${token}>`)])).toString()).toBe(`<${"*".repeat(token.length)}>`);
});

test("leaves no remainder of two values with a common prefix, however they are cut", async () => {
  const short = token.slice(0, 12);
  const stand = makePlaceholder(short, []);
  const redactor = redactorOf([
    { value: short, placeholder: stand },
    { value: token, placeholder },
  ]);
  const bytes = Buffer.from(`<${token}><${short}>`);
  for (let at = 0; at <= bytes.length; at++) {
    expect((await throughBody(redactor, cut(bytes, [at]))).toString()).toBe(`<${placeholder}><${stand}>`);
  }
});

test("holds back only the possible beginning of a value", () => {
  const body = redactorOf([{ value: token, placeholder }]).body();
  body.write("event: message\n\n");
  expect(body.read().toString()).toBe("event: message\n\n");
  body.write(`data: ${token.slice(0, 10)}`);
  expect(body.read().toString()).toBe("data: ");
  body.write("\n\n");
  expect(body.read().toString()).toBe(`${token.slice(0, 10)}\n\n`);
});

test("redacts heads", () => {
  const head: ResponseHead = {
    version: "1.1",
    status: 302,
    reason: token,
    headers: [
      { name: "Location", lower: "location", value: `https://example.com/?t=${token}` },
      { name: "X-Byte", lower: "x-byte", value: `\xff${token}\xe9` },
      { name: "Server", lower: "server", value: "x" },
    ],
  };
  const out = redactorOf([{ value: token, placeholder }]).head(head);
  expect(out.reason).toBe(placeholder);
  expect(out.headers.map(({ value }) => value)).toEqual([`https://example.com/?t=${placeholder}`, `\xff${placeholder}\xe9`, "x"]);
  expect(out.headers[2]).toBe(head.headers[2]);
});

test("does not change the input bytes, which may be shared", async () => {
  const chunk = Buffer.from(token);
  await throughBody(redactorOf([{ value: token, placeholder }]), [chunk]);
  expect(chunk.toString()).toBe(token);
});

/** Values that repeat themselves and each other are the hardest. */
const value = fc.oneof(
  fc.string({ unit: fc.constantFrom("a", "b"), minLength: 8, maxLength: 12 }),
  fc.string({ unit: fc.constantFrom("*", "x", "[", "]", "_", "-"), minLength: 8, maxLength: 10 }),
  fc.string({ unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)), minLength: 8, maxLength: 60 }),
);

test("lets no form of a value through, and changes no length", async () => {
  const samples = fc.record({
    values: fc.array(value, { minLength: 1, maxLength: 3 }),
    pieces: fc.array(fc.oneof(fc.nat(1000), fc.string({ unit: fc.constantFrom("a", "b", "*", "x"), maxLength: 9 })), { maxLength: 12 }),
    sizes: fc.array(fc.nat(30), { maxLength: 20 }),
    sameLength: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(samples, async ({ values, pieces, sizes, sameLength }) => {
      const forms = values.flatMap((each) => encodedForms(each, "").map(({ pattern }) => pattern));
      const whole = (piece: number) => forms[piece % forms.length] ?? "";
      // Parts of forms next to whole ones: a replacement and its neighbors must not form a value either.
      const bytes = Buffer.from(
        pieces.map((piece) => (typeof piece === "number" ? whole(piece).slice(piece % 3 === 0 ? piece % 5 : 0) : piece)).join(""),
      );
      const returning = values.map((each) => ({ value: each, placeholder: sameLength ? makePlaceholder(each, []) : "x".repeat(40) }));
      const out = await throughBody(redactorOf(returning), cut(bytes, sizes));
      expect(out.length).toBe(bytes.length);
      for (const form of forms) expect(out.includes(form)).toBe(false);
    }),
    { numRuns: tries(400) },
  );
});
