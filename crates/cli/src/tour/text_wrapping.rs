//! Wrapping of the text of `cuprum tour` to a fixed width.

/// Maximum width of a line of the output, in columns.
pub const LINE_WIDTH: usize = 100;

/// Returns `count` with the noun `noun`, in the plural unless `count` is 1.
pub fn count_with_noun(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Breaks `text` between words into lines of at most [`LINE_WIDTH`] columns. Longer words are split. Lines after the first begin with
/// `indent` spaces. Control characters become spaces.
pub fn wrap_text(text: &str, indent: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut line: Vec<char> = Vec::new();
    let leading = text.chars().take_while(|&c| c == ' ').count();
    line.resize(leading.min(LINE_WIDTH / 2), ' ');
    let mut is_empty = true;
    let indent = indent.min(LINE_WIDTH / 2);
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|w| !w.is_empty()) {
        let mut word: Vec<char> = word.chars().collect();
        if !is_empty && line.len() + 1 + word.len() > LINE_WIDTH {
            lines.push(line.iter().collect());
            line = vec![' '; indent];
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        while line.len() + word.len() > LINE_WIDTH {
            let rest = word.split_off(LINE_WIDTH - line.len());
            line.append(&mut word);
            lines.push(line.iter().collect());
            line = vec![' '; indent];
            word = rest;
        }
        line.append(&mut word);
        is_empty = false;
    }
    lines.push(line.iter().collect());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_and_keep_all_words() {
        let text = format!("  begin {} {} end\u{1b}[31m", "word ".repeat(60), "x".repeat(350));
        let wrapped = wrap_text(&text, 4);
        assert!(wrapped.lines().all(|l| l.chars().count() <= LINE_WIDTH), "{wrapped}");
        assert!(wrapped.starts_with("  begin word") && wrapped.lines().skip(1).all(|l| l.starts_with("    ")));
        assert_eq!(wrapped.matches("word").count(), 60);
        assert_eq!(wrapped.matches('x').count(), 350);
        assert!(!wrapped.contains('\u{1b}'));
        assert_eq!((wrap_text("", 2), wrap_text("one", 2)), (String::new(), "one".into()));
    }
}
