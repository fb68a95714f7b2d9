//! The names of the recipes on the command line and in records. Peers of every version read the records, so a name that
//! was ever written must stay readable.

use crate::core::settings::Recipe;

/// Every name. If a recipe has two names, the first is written.
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

/// `None`: a later version wrote it, with a recipe that we do not know.
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
