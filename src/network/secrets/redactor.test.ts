import { Readable } from "node:stream";
import fc from "fast-check";
import { expect, test } from "vitest";
import { tries } from "../../../test/support/thorough.ts";
import { encodedForms } from "./encodings.ts";
import { createRedactor, type Redactor } from "./redactor.ts";

const token = "ghp_Zx81kQpW0vT5yLr7Nc2Md9Hs4Jg6Fb3A";

function redactorOf(values: Record<string, string>): Redactor {
  return createRedactor({ version: () => 1, values: () => Object.entries(values).map(([name, value]) => ({ name, value })) });
}

async function throughStream(redactor: Redactor, chunks: readonly Buffer[]): Promise<string> {
  const out: Buffer[] = [];
  for await (const chunk of Readable.from(chunks, { objectMode: false }).pipe(redactor.stream())) out.push(chunk);
  return Buffer.concat(out).toString();
}

test("replaces a value and its encodings with its name, and keeps the rest", () => {
  const { text } = redactorOf({ GITHUB_TOKEN: token });
  expect(text(`grün ${token} 🙂 ${Buffer.from(token).toString("hex")}`)).toBe("grün [secret GITHUB_TOKEN] 🙂 [secret GITHUB_TOKEN]");
  expect(text(`curl -u x:${token}`)).toBe("curl -u x:[secret GITHUB_TOKEN]");
  expect(text(Buffer.from(`x-access-token:${token}`).toString("base64"))).toMatch(/^eC1hY2Nlc3MtdG9rZW46?.*\[secret GITHUB_TOKEN\].{0,4}$/);
  expect(text("nothing of the kind \ud800")).toBe("nothing of the kind \ud800");
});

test("redacts strings and keys of structures, and keeps other values", () => {
  const { json } = redactorOf({ T: token });
  const before = { argv: ["echo", token], [`k${token}`]: { deep: [`${token}${token}`] }, n: 12, none: null, yes: true };
  expect(json(before)).toEqual({
    argv: ["echo", "[secret T]"],
    "k[secret T]": { deep: ["[secret T][secret T]"] },
    n: 12,
    none: null,
    yes: true,
  });
  expect(before.argv[1]).toBe(token);
});

test("omits what is nested too deeply, without exhausting the stack", () => {
  let deep: unknown = token;
  for (let depth = 0; depth < 50_000; depth++) deep = [deep];
  expect(JSON.stringify(redactorOf({ T: token }).json(deep))).not.toContain(token);
});

test("uses another marker if the name would reveal the value", () => {
  expect(redactorOf({ PASSWORD: "PASSWORD" }).text("it is PASSWORD!")).toBe("it is ***!");
  expect(redactorOf({ A: "secret A", B: "***secret" }).text("<secret A>")).toBe("<…>");
});

test("finds values that become known later, even within an open stream", async () => {
  const values: { name: string; value: string }[] = [];
  const redactor = createRedactor({ version: () => values.length, values: () => values });
  const stream = redactor.stream();
  stream.write(`${token}\n`);
  values.push({ name: "T", value: token });
  stream.end(`${token}\n`);
  expect(Buffer.concat(await stream.toArray()).toString()).toBe(`${token}\n[secret T]\n`);
  expect(redactor.text(token)).toBe("[secret T]");
});

const value = fc.oneof(
  fc.string({ unit: fc.constantFrom("a", "b"), minLength: 8, maxLength: 12 }),
  fc.string({ unit: fc.constantFrom("[", "]", "s", "*", "{", "}", "<", ">"), minLength: 8, maxLength: 10 }),
  fc.string({ unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)), minLength: 8, maxLength: 60 }),
);

test("leaves no value, and redacts a stream in the same way as a text", async () => {
  const samples = fc.record({
    values: fc.array(value, { minLength: 1, maxLength: 3 }),
    pieces: fc.array(fc.oneof(fc.nat(1000), fc.string({ unit: fc.constantFrom("a", "b", "]", "ü"), maxLength: 9 })), { maxLength: 12 }),
    size: fc.integer({ min: 1, max: 40 }),
  });
  await fc.assert(
    fc.asyncProperty(samples, async ({ values, pieces, size }) => {
      const forms = values.flatMap((each) => encodedForms(each, "").map(({ pattern }) => pattern));
      const before = pieces
        .map((piece) => (typeof piece === "number" ? (forms[piece % forms.length] ?? "").slice(piece % 4 === 0 ? piece % 5 : 0) : piece))
        .join("");
      const redactor = redactorOf(Object.fromEntries(values.map((each, index) => [`S${index}`, each])));
      const after = redactor.text(before);
      for (const form of forms) expect(after).not.toContain(form);
      const bytes = Buffer.from(before);
      const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) => bytes.subarray(index * size, (index + 1) * size));
      expect(await throughStream(redactor, chunks)).toBe(after);
    }),
    { numRuns: tries(400) },
  );
});
