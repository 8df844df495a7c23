import { expect, test } from "vitest";
import { phaseText } from "./phase-text.ts";

test("puts a phase under headings, and omits empty ones", () => {
  const requirements = [{ id: "R1", statement: "The program shall count words.", criteria: ["two words are 2"] }];
  expect(phaseText("requirements", { requirements: { requirements } })).toEqual([
    { title: "Requirements", lines: [{ id: "R1", text: "The program shall count words.", notes: ["two words are 2"] }] },
  ]);
  const explore = { summary: "small", keyFiles: [], scope: { inside: [], outside: [] }, questions: [] };
  expect(phaseText("explore", { explore }).map(({ title }) => title)).toEqual(["Summary"]);
  expect(phaseText("design", {})).toEqual([]);
});
