import type { SourceFile, Violation } from "./rules.ts";

/**
 * The folders below guest/src, and those that each may include besides itself. The files in guest/src itself combine
 * them.
 */
export const mayInclude: Readonly<Record<string, readonly string[]>> = {
  base: [],
  wire: ["base"],
  connection: ["base", "wire"],
  spawner: ["base", "wire", "connection"],
  processes: ["base", "wire", "connection", "spawner"],
  files: ["base", "wire", "connection", "spawner"],
  ports: ["base", "wire", "connection"],
  launch: ["base"],
};

export function includeDirections(files: readonly SourceFile[]): Violation[] {
  return files.flatMap(({ path, text }) => {
    const [, folder] = /^guest\/src\/([^/]+)\/[^/]+\.[ch]$/.exec(path) ?? [];
    if (folder === undefined) return [];
    const allowed = mayInclude[folder];
    if (allowed === undefined) return [{ path, what: `guest/src/${folder} is not in the table of test/tidy/guest-includes.ts` }];
    return includesOf(text).flatMap((include) => {
      const target = include.includes("/") ? (include.split("/")[0] as string) : null;
      if (target === folder || (target !== null && allowed.includes(target))) return [];
      return [{ path, what: `guest/src/${folder} may not include "${include}"` }];
    });
  });
}

/** Frame fields have names, in wire/tags.h. */
export function tagsByName(files: readonly SourceFile[]): Violation[] {
  const bare = /\b(frame_field\w*|field_find\w*|request_path|request_number)\((?:[^;,]*,){1,2} *\d+,|\btag [=!]= *\d/;
  return files
    .filter(({ path, text }) => /^guest\/src\/.*\.[ch]$/.test(path) && bare.test(text))
    .map(({ path }) => ({ path, what: "refers to a field by its number; its name is in guest/src/wire/tags.h" }));
}

function includesOf(text: string): string[] {
  return [...text.matchAll(/^\s*#\s*include\s+"([^"]+)"/gm)].map(([, include]) => include as string);
}
