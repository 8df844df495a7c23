import { answers, entries, type Shape, shapes } from "../../src/sandbox/guest/fields.ts";

/** Fields that mean the same in every frame, so that code for several kinds of frames can name them. */
const SHARED = ["ref", "user", "stdoutFrom", "stderrFrom"];

/** Returns the text of `guest/src/wire/tags.h`, generated from the host's declarations of all payloads. */
export function tagsHeader(): string {
  // A file has the same fields in an answer and in an entry of a list.
  const { file, ...otherEntries } = entries;
  const { file: _same, ...otherAnswers } = answers;
  const groups: [string, Shape][] = [
    ...Object.entries(shapes),
    ["FILE", file],
    ...Object.entries({ ...otherEntries, ...otherAnswers }).map(([name, shape]): [string, Shape] => [constant(name), shape]),
  ];
  return [
    "/* Frame fields, generated from src/sandbox/guest/fields.ts by guest/test/tags.slow.test.ts (vitest -u). */",
    "#pragma once",
    "",
    "enum {",
    ...SHARED.map((field) => `  TAG_${constant(field)} = ${sharedTag(field)},`),
    "};",
    "",
    ...groups.flatMap(([name, shape]) => enumeration(name, shape)),
  ].join("\n");
}

function enumeration(name: string, shape: Shape): string[] {
  const own = Object.entries(shape).filter(([field]) => !SHARED.includes(field));
  if (own.length === 0) return [];
  return ["enum {", ...own.map(([field, { tag }]) => `  TAG_${name}_${constant(field)} = ${tag},`), "};", ""];
}

function sharedTag(field: string): number {
  const tags = new Set([...Object.values<Shape>(shapes), ...Object.values<Shape>(entries)].flatMap((shape) => shape[field]?.tag ?? []));
  const [tag] = tags;
  if (tag === undefined || tags.size > 1) throw new Error(`${field} has the tags ${[...tags].join(", ")}: it must be one`);
  return tag;
}

function constant(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
}
