import { lstatSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Returns a value in the forms in which it commonly travels. Each form is long enough not to occur by chance. */
export function formsOf(value: string): string[] {
  const bytes = Buffer.from(value);
  const base64 = [0, 1, 2].map((shift) => {
    // The bytes before shift the letters. The first and last letters also depend on their neighbors.
    const text = Buffer.concat([Buffer.alloc(shift), bytes])
      .toString("base64")
      .replace(/=+$/, "");
    return text.slice(shift === 0 ? 0 : shift + 1, -2);
  });
  const hex = bytes.toString("hex");
  return [
    value,
    ...base64,
    ...base64.map((text) => text.replaceAll("+", "-").replaceAll("/", "_")),
    hex,
    hex.toUpperCase(),
    [...value].reverse().join(""),
  ];
}

/** Returns the files in a folder that contain the value in any form. */
export function filesWith(folder: string, value: string): string[] {
  const forms = formsOf(value).map((form) => Buffer.from(form));
  const found: string[] = [];
  const visit = (path: string) => {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat?.isDirectory()) for (const name of readdirSync(path)) visit(join(path, name));
    if (!stat?.isFile()) return;
    const content = readFileSync(path);
    if (forms.some((form) => content.includes(form))) found.push(path);
  };
  visit(folder);
  return found;
}

export function textWith(text: string, value: string): string[] {
  return formsOf(value).filter((form) => text.includes(form));
}

/**
 * A Python script for inside. It searches the variables and arguments of every process, and every readable file younger
 * than an hour, which the machine's own programs are not. Prints where it finds the value. The forms arrive on standard
 * input, so the search does not find itself.
 */
export const searchInside = `
import os, stat, sys, time
forms = [line.encode() for line in sys.stdin.read().split()]
looked = 0
def look(path):
    global looked
    try:
        with open(path, "rb") as file: content = file.read(64 << 20)
    except OSError: return
    looked += 1
    if any(form in content for form in forms): print("FOUND", path)
def young(folder, names):
    for path in (os.path.join(folder, name) for name in names):
        try: info = os.lstat(path)
        except OSError: continue
        if stat.S_ISREG(info.st_mode) and info.st_ctime > time.time() - 3600: look(path)
for pid in filter(str.isdigit, os.listdir("/proc")):
    if int(pid) == os.getpid(): continue
    for name in ("environ", "cmdline", "comm"): look(f"/proc/{pid}/{name}")
look("/proc/self/environ")
for top in os.listdir("/"):
    if top in ("proc", "sys", "usr", "lib", "lib64", "bin", "sbin", "dev"): continue
    for folder, _, names in os.walk(f"/{top}"): young(folder, names)
for folder, _, names in os.walk("/dev/shm"): young(folder, names)
print("looked", looked)
`;
