/** Whether an image's reference names a place on this machine instead of an image in a registry or an engine. */
export function isMachinePath(reference: string): boolean {
  return /^[./~]|^(oci|oci-archive|docker-archive):/.test(reference);
}
