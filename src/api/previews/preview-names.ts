import { CaissonError } from "../../contract/error.ts";

/**
 * What previews are called from elsewhere: each has its id in the wildcard's place, and so an origin of its own. Names
 * can be read on the way, in questions to name servers and in the beginnings of TLS: the token that opens one is not
 * among them.
 */
export interface PreviewNames {
  /** For a frame of the console, such as `https://*.previews.example.com`. */
  readonly pattern: string;
  /** The id that stands in a `Host`; null for another name, `""` for one that no preview has. */
  idOf(host: string): string | null;
  /** Such as `https://pv-k3v7q2m5x4ab.previews.example.com`. */
  originOf(id: string): string;
}

const WILDCARD = /^https:\/\/\*\.((?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)(:[0-9]{1,5})?\/?$/;

/**
 * Throws `invalid` for what is not a wildcard name with TLS, and where the station's own name would be one of a
 * preview's: nothing of a sandbox is ever served from the console's origin.
 */
export function previewNames(text: string, { publicUrl }: { publicUrl: string | null }): PreviewNames {
  const [, base, port = ""] = WILDCARD.exec(text.toLowerCase()) ?? [];
  if (base === undefined) {
    throw new CaissonError("invalid", `--previews-at ${JSON.stringify(text)} is not a name for previews`, {
      hint: "It looks like https://*.previews.example.com: each preview gets a name of its own in the place of the star.",
    });
  }
  if (publicUrl === null) {
    throw new CaissonError("invalid", "previews that others reach need a station that others reach", {
      hint: "Name it, too: --public-url https://caisson.example.com",
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
    throw new CaissonError("invalid", `the station's own name ${new URL(publicUrl).host} is one of those for previews`, {
      hint: "Give previews a name of their own, such as https://*.previews.example.com.",
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
