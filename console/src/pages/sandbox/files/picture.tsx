import { useEffect, useState } from "react";
import { visibleText } from "../../../parts/visible-text.ts";
import styles from "./files.module.css";

/** As a picture only: whatever else is in the bytes is not run. */
export function Picture({ name, type, bytes }: { name: string; type: string; bytes: Uint8Array }) {
  const [url, setUrl] = useState<string | null>(null);
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([bytes as Uint8Array<ArrayBuffer>], { type }));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [type, bytes]);
  return <div className={styles.picture}>{url !== null && <img src={url} alt={visibleText(name)} />}</div>;
}
