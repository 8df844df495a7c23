import { createHash, X509Certificate } from "node:crypto";
import { expect, test } from "vitest";
import { createAuthority } from "./authority.ts";
import { javaKeyStore } from "./java-key-store.ts";

test("a trust store holds every certificate and the digest", () => {
  const pems = [createAuthority().certificatePem, `# a comment\n${createAuthority().certificatePem}\n${createAuthority().certificatePem}`];
  const store = javaKeyStore(pems);
  expect(store.readUInt32BE(0)).toBe(0xfeedfeed);
  expect(store.readUInt32BE(4)).toBe(2);
  expect(store.readUInt32BE(8)).toBe(3);
  expect(store.includes(new X509Certificate(pems[0] as string).raw)).toBe(true);
  const body = store.subarray(0, -20);
  const password = Buffer.from([..."changeit"].flatMap((letter) => [0, letter.charCodeAt(0)]));
  expect(store.subarray(-20)).toEqual(createHash("sha1").update(password).update("Mighty Aphrodite").update(body).digest());
  expect(javaKeyStore(pems)).toEqual(store);
});

test("skips unreadable certificates and rejects a text without readable ones", () => {
  const good = createAuthority().certificatePem;
  const broken = good.replace(/\n[A-Za-z0-9+/]{8}/, "\nAAAAAAAA");
  expect(javaKeyStore([`${broken}${good}`])).toEqual(javaKeyStore([good]));
  for (const text of ["", "hello", broken]) expect(() => javaKeyStore([text])).toThrowError(expect.objectContaining({ code: "invalid" }));
});
