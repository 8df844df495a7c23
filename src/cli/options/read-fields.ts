import type { FieldText, ReadAs } from "../../contract/sandbox/sandbox-field-options.ts";
import type { ParsedArguments } from "../command.ts";
import { parseBytes, parseCount, parseDuration, parseNumber } from "./option-values.ts";

const readers: Readonly<Record<Exclude<ReadAs, "own">, (args: ParsedArguments, name: string) => unknown>> = {
  switch: (args, name) => args.flag(name) || undefined,
  list: (args, name) => (args.options(name).length === 0 ? undefined : [...args.options(name)]),
  text: (args, name) => args.option(name),
  bytes: parsedBy(parseBytes),
  count: parsedBy(parseCount),
  number: parsedBy(parseNumber),
  duration: parsedBy(parseDuration),
};

function parsedBy(parse: (name: string, text: string) => number) {
  return (args: ParsedArguments, name: string) => {
    const text = args.option(name);
    return text === undefined ? undefined : parse(name, text);
  };
}

/** Reads the fields whose options are given, except those with their own parser. Throws `invalid`. */
export function readFields<Values>(args: ParsedArguments, table: Readonly<Record<keyof Values, FieldText>>): Partial<Values> {
  const read = Object.entries<FieldText>(table).flatMap(
    ([
      field,
      {
        reads,
        options: [option],
      },
    ]) => {
      const value = reads === "own" || option === undefined ? undefined : readers[reads](args, option.name);
      return value === undefined ? [] : [[field, value]];
    },
  );
  return Object.fromEntries(read);
}
