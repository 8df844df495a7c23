import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readdirSync } from "node:fs";

/** Two network namespaces joined by one wire: the machine that runs Caisson, and the rest of the world. */
export interface NamespacePair extends Disposable {
  machine: string;
  world: string;
}

/** The machine's addresses, and the world's next to them. They look public, like a rented server's. */
export const MACHINE_ADDRESS = "81.2.69.142";
export const MACHINE_ADDRESS_6 = "2a02:26f0:1::2";
const WORLD_ADDRESS = "81.2.69.141";
const WORLD_ADDRESS_6 = "2a02:26f0:1::1";
/** An address in a private network that the machine also belongs to, like a laptop at home. */
export const MACHINE_PRIVATE_ADDRESS = "192.168.77.2";

const PREFIX = "caisson-test-";
const machineMac = "02:00:00:00:0c:01";
const worldMac = "02:00:00:00:0c:02";

/**
 * Every address except the machine's belongs to the world, so everything that leaves the machine arrives there and is
 * seen. Neighbors are static, so only deliberate packets cross the wire.
 */
export function createNamespaces(): NamespacePair {
  sweepNamespaces();
  const name = `${PREFIX}${process.pid}-${randomBytes(3).toString("hex")}`;
  const pair: NamespacePair = {
    machine: `${name}-machine`,
    world: `${name}-world`,
    [Symbol.dispose]() {
      for (const namespace of [pair.machine, pair.world]) removeNamespace(namespace);
    },
  };
  try {
    for (const namespace of [pair.machine, pair.world]) ip(["netns", "add", namespace]);
    wire(pair);
  } catch (error) {
    pair[Symbol.dispose]();
    throw error;
  }
  return pair;
}

function wire({ machine, world }: NamespacePair): void {
  for (const namespace of [machine, world]) setUpKernel(namespace);
  ip([
    "-n",
    machine,
    "link",
    "add",
    "wire",
    "address",
    machineMac,
    "type",
    "veth",
    "peer",
    "name",
    "wire",
    "address",
    worldMac,
    "netns",
    world,
  ]);
  const both = [
    { namespace: machine, own: [`${MACHINE_ADDRESS}/30`, `${MACHINE_PRIVATE_ADDRESS}/32`, `${MACHINE_ADDRESS_6}/64`], mac: worldMac },
    { namespace: world, own: [`${WORLD_ADDRESS}/30`, `${WORLD_ADDRESS_6}/64`], mac: machineMac },
  ];
  for (const { namespace, own } of both) {
    for (const address of own) {
      ip(["-n", namespace, "address", "add", address, "dev", "wire", ...(address.includes(":") ? ["nodad"] : [])]);
    }
    for (const device of ["lo", "wire"]) ip(["-n", namespace, "link", "set", device, "up"]);
  }
  for (const { namespace, mac } of both) {
    const neighbours =
      namespace === machine ? [WORLD_ADDRESS, WORLD_ADDRESS_6] : [MACHINE_ADDRESS, MACHINE_PRIVATE_ADDRESS, MACHINE_ADDRESS_6];
    for (const address of neighbours)
      ip(["-n", namespace, "neighbour", "replace", address, "lladdr", mac, "dev", "wire", "nud", "permanent"]);
  }
  ip(["-n", machine, "route", "add", "default", "via", WORLD_ADDRESS, "src", MACHINE_ADDRESS]);
  ip(["-n", machine, "-6", "route", "add", "default", "via", WORLD_ADDRESS_6]);
  // In the main table, so the more specific route back to the machine wins.
  for (const family of ["-4", "-6"]) ip(["-n", world, family, "route", "add", "local", "default", "dev", "lo", "table", "main"]);
  ip(["-n", world, "route", "add", `${MACHINE_PRIVATE_ADDRESS}/32`, "dev", "wire"]);
}

/** Stops unrequested packets, and lets every user listen on low ports. */
function setUpKernel(namespace: string): void {
  const settings = {
    "net/ipv6/conf/default/router_solicitations": "0",
    "net/ipv6/conf/default/accept_ra": "0",
    "net/ipv4/conf/all/rp_filter": "0",
    "net/ipv4/conf/default/rp_filter": "0",
    "net/ipv4/ping_group_range": "0 2147483647",
  };
  const script = Object.entries(settings)
    .map(([name, value]) => `echo ${value} >/proc/sys/${name}`)
    .join("\n");
  execFileSync("nsenter", [`--net=/run/netns/${namespace}`, "sh", "-e", "-c", script]);
}

/** Removes the namespaces of killed test runs. Each name contains the pid of its run. */
function sweepNamespaces(): void {
  for (const name of namespaces()) {
    const owner = new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1];
    if (owner !== undefined && !lives(Number(owner))) removeNamespace(name);
  }
}

function namespaces(): string[] {
  try {
    return readdirSync("/run/netns");
  } catch {
    return [];
  }
}

function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

function removeNamespace(name: string): void {
  if (namespaces().includes(name)) ip(["netns", "delete", name]);
}

function ip(argv: readonly string[]): void {
  execFileSync("ip", argv, { stdio: ["ignore", "ignore", "pipe"] });
}
