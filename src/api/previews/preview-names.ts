import { CaissonError } from "../../contract/error/error.ts";

/**
 * The public names of previews. Each has its id in place of the wildcard, and so a separate origin. Names are visible
 * on the network, in DNS queries and TLS handshakes, so they do not contain the token that opens a preview.
 */
export interface PreviewNames {
  /** The pattern for frames of the console, such as `https://*.previews.example.com`. */
  readonly pattern: string;
  /** The id in a `Host` header; null for a name outside the pattern, `""` for one that no preview can have. */
  idOf(host: string): string | null;
  /** The origin of a preview, such as `https://pv-k3v7q2m5x4ab.previews.example.com`. */
  originOf(id: string): string;
}

const WILDCARD = /^https:\/\/\*\.((?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)(:[0-9]{1,5})?\/?$/;

/**
 * Throws `invalid` for anything but an https wildcard name, and if the station's own name would match it: nothing of a
 * sandbox is ever served from the console's origin.
 */
export function previewNames(text: string, { publicUrl }: { publicUrl: string | null }): PreviewNames {
  const [, base, port = ""] = WILDCARD.exec(text.toLowerCase()) ?? [];
  if (base === undefined) {
    throw new CaissonError("invalid", `--previews-at ${JSON.stringify(text)} is not a wildcard URL`, {
      hint: "Use a URL such as https://*.previews.example.com: each preview gets a separate name in place of the star.",
    });
  }
  if (publicUrl === null) {
    throw new CaissonError("invalid", "previews that other machines can reach need a station with a public URL", {
      hint: "Add --public-url https://caisson.example.com",
    });
  }
  const suffix = `.${base}`;
  const labelOf = (host: string): string | null => {
    const name = host
      .toLowerCase()
      .replace(/:[0-9]{1,5}$/, "")
      .replace(/\.$/, "");
    if (name === base) return "";
    return name.endsWith(suffix) ? name.slice(0, -suffix.length) : null;
  };
  const own = labelOf(new URL(publicUrl).host);
  if (own !== null && own !== "") {
    throw new CaissonError("invalid", `the station's own name ${new URL(publicUrl).host} matches the names of previews`, {
      hint: "Give previews a separate name, such as https://*.previews.example.com.",
    });
  }
  return {
    pattern: `https://*${suffix}${port}`,
    idOf(host) {
      const label = labelOf(host);
      // The bare name may be the station's own.
      if (label === null || (label === "" && own === "")) return null;
      return /^pv-[a-z2-7]{12}$/.test(label) ? label.replace("-", "_") : "";
    },
    originOf: (id) => `https://${id.replace("_", "-")}${suffix}${port}`,
  };
}
