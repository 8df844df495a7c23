import { useEffect, useState } from "react";
import { visibleText } from "../../../parts/visible-text.ts";
import styles from "./files.module.css";

/** Shows the bytes as a picture only. Nothing in them is executed. */
export function Picture({ name, type, bytes }: { name: string; type: string; bytes: Uint8Array }) {
  const [url, setUrl] = useState<string | null>(null);
  useEffect(() => {
    const objectUrl = URL.createObjectURL(new Blob([bytes as Uint8Array<ArrayBuffer>], { type }));
    setUrl(objectUrl);
    return () => URL.revokeObjectURL(objectUrl);
  }, [type, bytes]);
  return <div className={styles.picture}>{url !== null && <img src={url} alt={visibleText(name)} />}</div>;
}
