import { shortcuts } from "../../shell/shortcuts.ts";
import styles from "./settings.module.css";

export default function Shortcuts() {
  return (
    <dl className={styles.keys}>
      {shortcuts.map(({ keys, does, where }) => (
        <div key={keys + where} style={{ display: "contents" }}>
          <dt>
            {keys.split(" ").map((key) => (
              <kbd key={key}>{key}</kbd>
            ))}
          </dt>
          <dd>
            {does} <span className={styles.dim}>{where}</span>
          </dd>
        </div>
      ))}
    </dl>
  );
}
