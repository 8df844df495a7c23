import type { SpecData } from "../../contract/spec.ts";

/** A spec that passes every check, for tests. */
export const goodData = {
  explore: {
    summary: "A small program that reads a text and says how many letters it has; it has one source file and one test.",
    keyFiles: [
      { path: "src/main.ts", why: "reads the text" },
      { path: "src/letters.ts", why: "counts letters" },
      { path: "test/letters.test.ts", why: "shows how things are tested" },
    ],
    scope: { inside: ["counting words"], outside: ["other languages"] },
    questions: [],
  },
  prd: {
    problem: "Writers want to know how long a text is, and letters do not say.",
    goals: ["count words"],
    stories: [
      { id: "US-001", as: "a writer", want: "to know how many words a text has", so: "I know how long it is" },
      { id: "US-002", as: "a writer", want: "to be told when a text is empty", so: "" },
    ],
    metrics: [{ name: "texts counted right", target: "all" }],
    outOfScope: [],
  },
  requirements: {
    requirements: [
      {
        id: "REQ-001",
        statement: "When a text is given, the counter shall say how many words it has.",
        story: "US-001",
        criteria: ["two words give 2", "several spaces count as one"],
      },
      {
        id: "REQ-002",
        statement: "If the text is empty, then the counter shall say 0.",
        story: "US-002",
        criteria: ["an empty file gives 0", "spaces alone give 0"],
      },
    ],
  },
  design: {
    overview: "A function takes a text apart at white space and counts what is left; the program prints it.",
    components: [{ name: "words", does: "counts", requirements: ["REQ-001", "REQ-002"] }],
    api: "words(text): number",
    data: "Nothing is kept.",
    security: "Texts are bounded by memory alone.",
  },
  tasks: {
    tasks: [
      { id: "TASK-001", title: "Count words", description: "", hours: 2, dependsOn: [], requirements: ["REQ-001"] },
      { id: "TASK-002", title: "Empty texts", description: "", hours: 1, dependsOn: ["TASK-001"], requirements: ["REQ-002"] },
    ],
    criticalPath: ["TASK-001", "TASK-002"],
  },
  sync: {
    matrix: [
      { requirement: "REQ-001", components: ["words"], tasks: ["TASK-001"] },
      { requirement: "REQ-002", components: ["words"], tasks: ["TASK-002"] },
    ],
    gaps: [],
    ready: true,
  },
} satisfies Required<SpecData>;
