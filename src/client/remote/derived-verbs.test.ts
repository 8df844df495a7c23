import { expect, test } from "vitest";
import { z } from "zod";
import { declaredVerbs } from "../../verbs/declared-verbs.ts";
import type { GroupName } from "../../verbs/station.ts";
import type { VerbDeclaration } from "../../verbs/verb.ts";
import { verbFacts } from "../../verbs/verb-facts.ts";
import { derivedVerbs } from "./derived-verbs.ts";

/** Derived verbs that take an object, with the names of its fields. */
const taking = Object.entries(declaredVerbs).flatMap(([group, verbs]) =>
  Object.entries(verbs as Record<string, VerbDeclaration & { byHand?: true }>).flatMap(([name, declared]) => {
    const { takes, lead, kind, byHand } = declared;
    if (byHand || !(takes instanceof z.ZodObject) || kind === "log" || kind === "wait" || kind === "bytes") return [];
    const fields = Object.keys(takes.shape).filter((field) => field !== lead);
    return [{ verb: `${group}.${name}`, group: group as GroupName, name, declared, fields }];
  }),
);

test("finds derived verbs, including one with an owner field", () => {
  expect(taking.length).toBeGreaterThan(40);
  expect(taking.find(({ verb }) => verb === "tokens.create")?.fields).toContain("owner");
});

test.each(taking)("$verb sends every input field, but nothing that the token specifies", ({ group, name, declared, fields }) => {
  let sent: unknown[] = [];
  const call = (...args: unknown[]) => {
    sent = args;
  };
  const verbs = derivedVerbs(group, { [name]: call } as never) as Record<string, (...args: unknown[]) => unknown>;
  const ids = [...declared.path.matchAll(/\{\w+\}/g)].map((_, index) => `id ${index}`);
  const leading = declared.lead === undefined ? ids : [...ids, "lead"];
  const input = Object.fromEntries(fields.map((field) => [field, `value of ${field}`]));
  const facts = verbFacts[group][name];
  const beside = { ...(facts?.by && { by: "somebody" }), ...(facts?.owner && { owner: "somebody" }) };
  verbs[name]?.(...leading, ...(declared.apart ? [input, beside] : [{ ...input, ...beside }]));
  expect(sent).toEqual([...leading, ...(fields.length > 0 ? [input] : []), {}]);
});
