import { useState } from "react";
import { useSignOut } from "../../data/station.tsx";
import { chooseTheme, chosenTheme, type Theme } from "../../design/theme.ts";
import { Button } from "../../parts/button.tsx";
import styles from "./settings.module.css";

const themes: readonly { theme: Theme; label: string }[] = [
  { theme: "system", label: "System" },
  { theme: "light", label: "Light" },
  { theme: "dark", label: "Dark" },
];

export default function Look() {
  const [theme, setTheme] = useState(chosenTheme);
  const signOut = useSignOut();
  return (
    <>
      <h2>Colors</h2>
      <div className={styles.line}>
        {themes.map((each) => (
          <Button
            key={each.theme}
            isOn={theme === each.theme}
            onClick={() => {
              chooseTheme(each.theme);
              setTheme(each.theme);
            }}
          >
            {each.label}
          </Button>
        ))}
      </div>
      <h2>This browser</h2>
      <p className={styles.about}>This browser keeps its token for the station until you sign out.</p>
      <div className={styles.line}>
        <Button onClick={signOut}>Sign out</Button>
      </div>
    </>
  );
}
