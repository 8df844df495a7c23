import { CaissonError } from "../../contract/error/error.ts";
import { BuildImage } from "../../contract/image/image-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { showBytes } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { checkOptions } from "../options/option-names.ts";
import { debianFrom } from "../options/parse-debian.ts";
import { printResult, removeNamed } from "../print-result.ts";
import { line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

/** `caisson image build DISTRIBUTION` */
export async function buildImage(context: CliContext, args: ParsedArguments): Promise<number> {
  for await (const event of context.station.images.build(parseBuild(args))) {
    if ("progress" in event) {
      await context.stderr.print(line`${event.progress}`);
      continue;
    }
    const { name, bytes } = event.image;
    const text = [line`Built ${name}, ${showBytes(bytes)}.`, line`Use it with: caisson exec --image ${name} -- COMMAND`];
    await printResult(context, args, { json: event.image, text });
  }
  return 0;
}

function parseBuild(args: ParsedArguments): BuildImage {
  const [distribution = ""] = args.positionals;
  if (distribution !== "debian")
    throw new CaissonError("invalid", `cannot build images of ${JSON.stringify(distribution)}`, {
      hint: "Build `debian`, or use an image from a registry or an archive: `--image REF`.",
    });
  return checkOptions(BuildImage, {
    distribution,
    ...debianFrom(args),
    ...(defined({ name: args.option("name") }) as Partial<BuildImage>),
  });
}

/** `caisson image ls` */
export async function listImages(context: CliContext, args: ParsedArguments): Promise<number> {
  const images = await context.station.images.list();
  const rows = images.map(({ name, distribution, suite, packages, bytes, createdAt }) => [
    ...[name, `${distribution} ${suite}`, packages.join(", ") || "–", showBytes(bytes), createdAt],
  ]);
  return await printResult(context, args, {
    json: images,
    text:
      rows.length === 0
        ? line`No images. Build one: caisson image build debian`
        : table([["NAME", "SYSTEM", "PACKAGES", "SIZE", "CREATED"], ...rows]),
  });
}

/** `caisson image show NAME` */
export async function showImage(context: CliContext, args: ParsedArguments): Promise<number> {
  const image = await context.station.images.get(args.positionals[0] ?? "");
  const { name, distribution, suite, packages, bytes, createdAt, digest } = image;
  return await printResult(context, args, {
    json: image,
    text: table([
      ["name", name],
      ["system", `${distribution} ${suite}`],
      ["packages", packages.join(", ") || "–"],
      ["size", showBytes(bytes)],
      ["built", createdAt],
      ["digest", digest],
    ]),
  });
}

/** `caisson image rm NAME…` */
export async function removeImages(context: CliContext, args: ParsedArguments): Promise<number> {
  return await removeNamed(context, args, { remove: (name) => context.station.images.remove(name) });
}
