// VitePress's own theme, with colours that have enough contrast.
import theme from 'vitepress/theme';
import './style.css';

export default theme;
