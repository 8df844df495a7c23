import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type AddressKind, canonicalAddress, classifyAddress, reachOf } from "./addresses.ts";

const own = new Set(["203.0.113.9", "2001:db8::9"]);

const cases: Record<AddressKind, string[]> = {
  public: [
    "1.1.1.1",
    "8.8.8.8",
    "100.63.255.255",
    "100.128.0.1",
    "172.15.255.255",
    "172.32.0.1",
    "192.0.2.1",
    "198.51.100.1",
    "203.0.113.1",
    "198.17.255.255",
    "198.20.0.1",
    "2606:4700::1111",
    "2001:db8::1",
    "64:ff9b::808:808",
    "2002:808:808::1",
  ],
  loopback: [
    "127.0.0.1",
    "127.255.255.254",
    "::1",
    "::ffff:127.0.0.1",
    "::127.0.0.1",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "2001:4860:1::5efe:127.0.0.1",
  ],
  private: [
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "100.64.0.1",
    "100.127.255.255",
    "240.0.0.1",
    "fc00::1",
    "fd12:3456::1",
    "fec0::1",
    "::ffff:10.0.0.1",
    "64:ff9b::a00:1",
    "64:ff9b:1::10.0.0.1",
    "64:ff9b:1:a00:0:100::",
    "2002:c0a8:101::1",
  ],
  own: ["203.0.113.9", "::ffff:203.0.113.9", "2001:db8::9", "2001:db8:0:0::9", "64:ff9b::203.0.113.9"],
  link_local: ["169.254.0.1", "169.254.170.2", "fe80::1", "febf::1", "::ffff:169.254.1.1"],
  metadata: [
    "169.254.169.254",
    "fd00:ec2::254",
    "fd20:ce::254",
    "100.100.100.200",
    "192.0.0.192",
    "168.63.129.16",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
    "2001:0:a9fe:a9fe::1",
    "64:ff9b:1:a9fe:a9:fe00::",
    "64:ff9b:1::169.254.169.254",
    "2001:0:808:808:0:0:5601:5601",
  ],
  unspecified: ["0.0.0.0", "0.1.2.3", "::", "::ffff:0.0.0.0"],
  multicast: ["224.0.0.1", "239.255.255.250", "ff02::1", "::ffff:224.0.0.1"],
  reserved: ["255.255.255.255", "198.18.0.1", "198.19.255.255", "192.0.0.8", "100::1", "not an address", "", "fe80::1%eth0"],
};

describe("N01: address classification", () => {
  test.each(Object.entries(cases).flatMap(([kind, addresses]) => addresses.map((address) => [address, kind])))(
    "%s is %s",
    (address, kind) => expect(classifyAddress(address as string, own)).toBe(kind),
  );

  test("maps each kind to its reach", () => {
    expect((["public", "loopback", "private", "own"] as const).map(reachOf)).toEqual(["public", "private", "private", "private"]);
    expect((["link_local", "metadata", "unspecified", "multicast", "reserved"] as const).map(reachOf)).toEqual(new Array(5).fill("never"));
  });

  test("classifies an IPv4 address alike in every IPv6 form", () => {
    fc.assert(
      fc.property(fc.ipV4(), (inner) => {
        const kind = classifyAddress(inner, own);
        for (const prefix of ["::ffff:", "64:ff9b::", "::ffff:0:"]) expect(classifyAddress(`${prefix}${inner}`, own)).toBe(kind);
      }),
    );
  });

  test("never throws, and canonicalizes idempotently", () => {
    fc.assert(fc.property(fc.string(), (text) => void classifyAddress(text, own)));
    fc.assert(
      fc.property(fc.ipV6(), (text) => {
        expect(canonicalAddress(canonicalAddress(text) as string)).toBe(canonicalAddress(text));
      }),
    );
    expect(canonicalAddress("fe80::1%eth0")).toBe("fe80::1");
    expect(canonicalAddress("nonsense")).toBeNull();
  });
});
