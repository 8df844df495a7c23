import { CaissonError } from "../../../contract/error/error.ts";

/** Returns a source as a path below the folder. Throws `unsafe` for one that leaves it. */
export function contextPath(source: string): string {
  const names: string[] = [];
  for (const name of source.split("/")) {
    if (name === "" || name === ".") continue;
    if (name !== "..") names.push(name);
    else if (names.pop() === undefined)
      throw new CaissonError("unsafe", `${JSON.stringify(source.slice(0, 200))} leaves the context`, {
        hint: "COPY and ADD read only files below the folder that is built.",
      });
  }
  return names.join("/");
}
