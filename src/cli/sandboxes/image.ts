import { CaissonError } from "../../contract/error.ts";
import { BuildImage } from "../../contract/image-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { showBytes } from "../../lib/quantity.ts";
import type { CommandSpec, ParsedArguments } from "../command.ts";
import { checkOptions } from "../options/option-names.ts";
import { line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

type Loaded = Awaited<ReturnType<CommandSpec["load"]>>;

export const build: Loaded = {
  async run({ station, stdout, stderr }, given) {
    for await (const told of station.images.build(requested(given))) {
      if ("progress" in told) {
        await stderr.print(line`${told.progress}`);
        continue;
      }
      const { name, bytes } = told.image;
      if (given.flag("json")) await stdout.printJson(told.image);
      else {
        await stdout.print(line`Built ${name}, ${showBytes(bytes)}.`);
        await stdout.print(line`Start from it: caisson exec --image ${name} -- COMMAND`);
      }
    }
    return 0;
  },
};

function requested(given: ParsedArguments): BuildImage {
  const [distribution = ""] = given.positionals;
  if (distribution !== "debian")
    throw new CaissonError("invalid", `images of ${JSON.stringify(distribution)} cannot be built`, {
      hint: "Build `debian`, or start from an image of a registry or an archive: `--image REF`.",
    });
  const packages = given
    .options("include")
    .flatMap((list) => list.split(","))
    .map((name) => name.trim());
  return checkOptions(BuildImage, {
    distribution,
    packages: packages.filter((name) => name !== ""),
    ...(defined({
      name: given.option("name"),
      suite: given.option("suite"),
      variant: given.option("variant"),
      mirror: given.option("mirror"),
    }) as Partial<BuildImage>),
  });
}

export const list: Loaded = {
  async run({ station, stdout }, given) {
    const images = await station.images.list();
    if (given.flag("json")) await stdout.printJson(images);
    else if (images.length === 0) await stdout.print(line`No images. \`caisson image build debian\` builds one.`);
    else {
      const rows = images.map(({ name, distribution, suite, packages, bytes, createdAt }) => [
        name,
        `${distribution} ${suite}`,
        packages.join(", ") || "–",
        showBytes(bytes),
        createdAt,
      ]);
      await stdout.print(table([["NAME", "SYSTEM", "PACKAGES", "SIZE", "MADE"], ...rows]));
    }
    return 0;
  },
};

export const remove: Loaded = {
  async run({ station }, given) {
    for (const name of given.positionals) await station.images.remove(name);
    return 0;
  },
};
