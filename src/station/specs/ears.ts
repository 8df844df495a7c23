/**
 * The Easy Approach to Requirements Syntax: a requirement is one sentence with `shall`. Its condition comes first,
 * introduced by a word that tells its kind.
 */
export type EarsForm = "ubiquitous" | "event" | "state" | "option" | "unwanted" | "complex";

const openings: readonly { word: string; form: EarsForm }[] = [
  { word: "when", form: "event" },
  { word: "while", form: "state" },
  { word: "where", form: "option" },
  { word: "if", form: "unwanted" },
];

/** Returns the form of a requirement, or null if it is not in EARS. */
export function earsForm(statement: string): EarsForm | null {
  const text = statement.trim().replace(/\s+/g, " ").toLowerCase();
  const shall = text.indexOf(" shall ");
  if (shall < 0 || text.slice(shall + " shall ".length).replace(/[.\s]/g, "") === "") return null;
  const before = text.slice(0, shall);
  const clauses = before.split(", ");
  const subject = (clauses.at(-1) ?? "").replace(/^then /, "");
  // The subject must be a named system, not "it" or nothing.
  if (!/^the \S/.test(subject)) return null;
  const conditions = clauses.slice(0, -1);
  if (conditions.length === 0) return "ubiquitous";
  const forms = conditions.map(formOf).filter((form) => form !== null);
  const [first] = conditions;
  if (first === undefined || formOf(first) === null) return null;
  if (forms.length > 1) return "complex";
  if (forms[0] === "unwanted" && !/^then /.test(clauses.at(-1) ?? "")) return null;
  return forms[0] ?? null;
}

function formOf(clause: string): EarsForm | null {
  const opening = openings.find(({ word }) => clause.startsWith(`${word} `) && clause.length > word.length + 1);
  return opening?.form ?? null;
}
