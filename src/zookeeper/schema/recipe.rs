//! What the recipes are called: on the command line, and in records, which peers of every version read.
//!
//! Never: a name that was written into a record, and is not read any more.

use crate::core::settings::Recipe;

/// Every name; of two for one recipe, the first is written.
pub const RECIPES: [(&str, Recipe); 6] = [
    ("sequential", Recipe::Sequential),
    ("curator-latch", Recipe::Sequential),
    ("curator-lock", Recipe::CuratorLock),
    ("kazoo", Recipe::Kazoo),
    ("java-les", Recipe::JavaLes),
    ("single", Recipe::Single),
];

pub fn text(recipe: Recipe) -> &'static str {
    RECIPES.iter().find(|(_, meaning)| *meaning == recipe).map_or("", |(text, _)| text)
}

/// `None`: of a version that knows more recipes.
pub fn meaning(text: &str) -> Option<Recipe> {
    RECIPES.iter().find(|(name, _)| *name == text).map(|(_, meaning)| *meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recipe_has_a_name_that_is_read_back() {
        for (name, recipe) in RECIPES {
            assert_eq!((meaning(name), meaning(text(recipe))), (Some(recipe), Some(recipe)));
        }
        assert_eq!(text(Recipe::Sequential), "sequential", "so did versions write it that knew two recipes");
        assert_eq!(meaning("raft"), None);
    }
}
