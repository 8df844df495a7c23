import type { BuildImage } from "../../contract/image/image-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";

/** Returns what a Debian system consists of, from the options that images and templates share. */
export function debianFrom(args: ParsedArguments): Omit<BuildImage, "distribution" | "name"> {
  const packages = args
    .options("include")
    .flatMap((list) => list.split(","))
    .map((name) => name.trim());
  const [suite, variant, mirror] = ["suite", "variant", "mirror"].map((name) => args.option(name));
  return { packages: packages.filter((name) => name !== ""), ...(defined({ suite, variant, mirror }) as Partial<BuildImage>) };
}
