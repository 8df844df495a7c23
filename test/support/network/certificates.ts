import { execFileSync } from "node:child_process";
import { appendFileSync, copyFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface Identity {
  keyPem: string;
  certificatePem: string;
}

export interface Certificates {
  /** The authority that the machine trusts. */
  authorityFile: string;
  /** The machine's bundle, including that authority. */
  bundleFile: string;
  /** Valid for every name of the rig. */
  good: Identity;
  /** Signed by the same authority, for another name. */
  wrongName: Identity;
  expired: Identity;
  /** Valid for every name of the rig, but signed by an unknown authority. */
  unknown: Identity;
}

const SYSTEM_BUNDLE = "/etc/ssl/certs/ca-certificates.crt";

/** Creates the certificates of a rig with openssl. */
export function makeCertificates(folder: string, names: readonly string[]): Certificates {
  const authority = makeAuthority(folder, "rig");
  const stranger = makeAuthority(folder, "stranger");
  const bundleFile = join(folder, "bundle.pem");
  if (existsSync(SYSTEM_BUNDLE)) copyFileSync(SYSTEM_BUNDLE, bundleFile);
  else writeFileSync(bundleFile, "");
  appendFileSync(bundleFile, `\n${readFileSync(`${authority}.pem`, "utf8")}`);
  return {
    authorityFile: `${authority}.pem`,
    bundleFile,
    good: issue({ folder, authority, file: "good", names }),
    wrongName: issue({ folder, authority, file: "wrong-name", names: ["somebody-else.example"] }),
    expired: issue({ folder, authority, file: "expired", names, days: -1 }),
    unknown: issue({ folder, authority: stranger, file: "unknown", names }),
  };
}

function makeAuthority(folder: string, name: string): string {
  const path = join(folder, name);
  openssl(
    [
      "req",
      "-x509",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:prime256v1",
      "-nodes",
      "-days",
      "2",
      "-subj",
      `/CN=Caisson test ${name}`,
    ].concat([
      "-addext",
      "basicConstraints=critical,CA:TRUE",
      "-addext",
      "keyUsage=critical,keyCertSign,cRLSign",
      "-keyout",
      `${path}.key`,
      "-out",
      `${path}.pem`,
    ]),
  );
  return path;
}

function issue(options: { folder: string; authority: string; file: string; names: readonly string[]; days?: number }): Identity {
  const path = join(options.folder, options.file);
  const extensions = [
    `subjectAltName=${options.names.map((name) => (/^[\d.]+$|:/.test(name) ? `IP:${name}` : `DNS:${name}`)).join(",")}`,
    "extendedKeyUsage=serverAuth",
    "basicConstraints=critical,CA:FALSE",
    "authorityKeyIdentifier=keyid",
  ];
  writeFileSync(`${path}.cnf`, extensions.join("\n"));
  openssl(
    ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", `/CN=${options.names[0]}`].concat([
      "-keyout",
      `${path}.key`,
      "-out",
      `${path}.csr`,
    ]),
  );
  openssl(
    [
      "x509",
      "-req",
      "-in",
      `${path}.csr`,
      "-CA",
      `${options.authority}.pem`,
      "-CAkey",
      `${options.authority}.key`,
      "-CAcreateserial",
    ].concat(["-days", String(options.days ?? 2), "-extfile", `${path}.cnf`, "-out", `${path}.pem`]),
  );
  return { keyPem: readFileSync(`${path}.key`, "utf8"), certificatePem: readFileSync(`${path}.pem`, "utf8") };
}

function openssl(argv: readonly string[]): void {
  execFileSync("openssl", argv, { stdio: ["ignore", "ignore", "pipe"] });
}
